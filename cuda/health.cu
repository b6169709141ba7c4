/*
 * health.cu
 *		What the driver's library for management, NVML, says of the health of a device.
 *
 * NVML is a part of the driver, but not of every installation of it, so it is opened when it is
 * first asked, and its few functions are declared here.  They return 0 on success.  NVML knows
 * devices by their address on the bus, since CUDA_VISIBLE_DEVICES does not change its numbers.
 *
 * The emulator says what the environment variable GPUSORT_EMU_HEALTH has: "TEMPERATURE ERRORS".
 */
#include "device.h"

#include <cstdio>
#include <cstdlib>

#ifdef __CUDACC__
#include <dlfcn.h>

namespace
{

constexpr int SENSOR_GPU = 0;		 /* NVML_TEMPERATURE_GPU */
constexpr int UNCORRECTED = 1;		 /* NVML_MEMORY_ERROR_TYPE_UNCORRECTED */
constexpr int SINCE_DRIVER_LOAD = 0; /* NVML_VOLATILE_ECC */

struct Nvml {
	bool tried;
	int (*handle)(const char *bus, void **device);
	int (*temperature)(void *device, int sensor, unsigned *celsius);
	int (*errors)(void *device, int type, int since, unsigned long long *count);
};

/* Opens NVML at the first call.  Functions that it does not have are NULL. */
const Nvml &nvml()
{
	static Nvml functions;
	if (functions.tried)
		return functions;
	functions.tried = true;
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)() = library ? (int (*)())dlsym(library, "nvmlInit_v2") : nullptr;
	if (!init || init() != 0)
		return functions;
	functions.handle =
		(decltype(functions.handle))dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	functions.temperature =
		(decltype(functions.temperature))dlsym(library, "nvmlDeviceGetTemperature");
	functions.errors =
		(decltype(functions.errors))dlsym(library, "nvmlDeviceGetTotalEccErrors");
	return functions;
}

} // namespace

void gpusort_device_health(GsDevice *device, GsDeviceHealth *health)
{
	const Nvml &library = nvml();
	char bus[32];
	void *handle = nullptr;
	unsigned celsius;
	unsigned long long count;

	*health = {-1, -1};
	if (device->lost || !library.handle)
		return;
	if (cudaDeviceGetPCIBusId(bus, sizeof bus, device->ordinal) != cudaSuccess) {
		(void)cudaGetLastError();
		return;
	}
	if (library.handle(bus, &handle) != 0)
		return;
	if (library.temperature && library.temperature(handle, SENSOR_GPU, &celsius) == 0)
		health->temperature = (int32_t)celsius;
	if (library.errors && library.errors(handle, UNCORRECTED, SINCE_DRIVER_LOAD, &count) == 0)
		health->memory_errors = (int64_t)count;
}

#else

void gpusort_device_health(GsDevice *device, GsDeviceHealth *health)
{
	const char *text = getenv("GPUSORT_EMU_HEALTH");
	int temperature;
	long errors;

	*health = {-1, -1};
	if (!device->lost && text && sscanf(text, "%d %ld", &temperature, &errors) == 2)
		*health = {temperature, errors};
}

#endif
