/*-------------------------------------------------------------------------
 *
 * device_library.c
 *		Finds and opens pg_gpusort.device_library.
 *
 * A name without a path is looked up in the directory of PostgreSQL's own
 * modules, where "make install" puts the device library.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <dlfcn.h>
#include <unistd.h>

#include "miscadmin.h"

#include "service/device_library.h"
#include "settings.h"

static void
find_library(char *path)
{
	if (is_absolute_path(gpusort_device_library))
		strlcpy(path, gpusort_device_library, MAXPGPATH);
	else
		snprintf(path, MAXPGPATH, "%s/%s%s", pkglib_path,
				 gpusort_device_library, DLSUFFIX);
}

bool
gpusort_device_library_exists(void)
{
	char		path[MAXPGPATH];

	if (gpusort_device_library[0] == '\0')
		return false;
	find_library(path);
	return access(path, R_OK) == 0;
}

const		GsDeviceApi *
gpusort_device_library_open(char *message, Size message_bytes)
{
	char		path[MAXPGPATH];
	void	   *library;
	GsDeviceApiFunction get_api;
	const		GsDeviceApi *api;

	find_library(path);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
	{
		snprintf(message, message_bytes, "could not open \"%s\": %s", path,
				 dlerror());
		return NULL;
	}
	get_api = (GsDeviceApiFunction) dlsym(library, GPUSORT_DEVICE_ENTRY);
	if (get_api == NULL)
	{
		snprintf(message, message_bytes, "\"%s\" is not a device library",
				 path);
		return NULL;
	}
	api = get_api(GPUSORT_DEVICE_ABI_VERSION);
	if (api == NULL || api->abi_version != GPUSORT_DEVICE_ABI_VERSION ||
		api->struct_size < sizeof(GsDeviceApi))
	{
		snprintf(message, message_bytes,
				 "\"%s\" is of another version of pg_gpusort", path);
		return NULL;
	}
	return api;
}
