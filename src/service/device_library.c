/*-------------------------------------------------------------------------
 *
 * device_library.c
 *		Finds and opens pg_gpusort.device_library.
 *
 * A name without a path is looked up in the directory of our own library,
 * beside which it is installed.  That is usually the directory of
 * PostgreSQL's modules, but the server may have found our library in another
 * directory of dynamic_library_path.
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
	Dl_info		ours;
	const char *end;

	if (is_absolute_path(gpusort_device_library))
	{
		strlcpy(path, gpusort_device_library, MAXPGPATH);
		return;
	}
	/* PostgreSQL loads libraries by absolute paths. */
	if (dladdr(&gpusort_device_library, &ours) != 0 &&
		(end = last_dir_separator(ours.dli_fname)) != NULL)
		snprintf(path, MAXPGPATH, "%.*s/%s%s",
				 (int) (end - ours.dli_fname), ours.dli_fname,
				 gpusort_device_library, DLSUFFIX);
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
