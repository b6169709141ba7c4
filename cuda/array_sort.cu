/*
 * array_sort.cu
 *		Sorts of arrays: checks the request, and copies host arrays to the device and back.
 */
#include "device.h"

namespace
{

/* One array of a request, at the caller's address and on the device. */
struct Array {
	const void *in;
	void *out;
	size_t bytes;
	void *device_in;
	void *device_out;
};

bool is_aligned(const void *pointer, size_t to)
{
	return (uintptr_t)pointer % to == 0;
}

bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	return a && b && (uintptr_t)a < (uintptr_t)b + b_bytes &&
		   (uintptr_t)b < (uintptr_t)a + a_bytes;
}

GsStatus check_request(GsDevice *device, const GsSortRequest *r)
{
	uint32_t key_bits = 8 * r->key_width;
	bool device_arrays = r->location == GPUSORT_DEVICE_ARRAYS;

	if (r->key_width != 4 && r->key_width != 8)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "unsupported key width: %u bytes", r->key_width);
	if (r->value_width != 0 && r->value_width != 4 && r->value_width != 8)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "unsupported value width: %u bytes", r->value_width);
	if (r->begin_bit > r->end_bit || r->end_bit > key_bits)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "invalid range of key bits: %u to %u", r->begin_bit,
								   r->end_bit);
	if ((int)r->order < GPUSORT_UNSIGNED || r->order > GPUSORT_FLOAT)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "unrecognized key order: %d",
								   (int)r->order);
	if (r->location != GPUSORT_HOST_ARRAYS && !device_arrays)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "unrecognized array location: %d", (int)r->location);
	if (r->n == 0)
		return GPUSORT_OK;
	if (r->n > SIZE_MAX / 64)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "too many items: %llu",
								   (unsigned long long)r->n);
	if (!r->keys_in || (!r->keys_out && !r->values_out))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "no input keys or no output array");
	if ((r->value_width != 0) != (r->values_out != nullptr) ||
		(!r->value_width && r->values_in))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "value arrays do not match the value width");
	if (r->value_width == 4 && !r->values_in && r->n > (uint64_t)1 << 32)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "row numbers do not fit in 4 bytes");
	if (!is_aligned(r->keys_in, r->key_width) || !is_aligned(r->keys_out, r->key_width) ||
		(r->value_width && (!is_aligned(r->values_in, r->value_width) ||
							!is_aligned(r->values_out, r->value_width))))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "arrays are not aligned to the size of their items");
	bool same_keys = r->keys_in == r->keys_out && !device_arrays;
	bool same_values = r->values_in == r->values_out && !device_arrays;
	size_t key_bytes = (size_t)r->n * r->key_width;
	size_t value_bytes = (size_t)r->n * r->value_width;
	if ((!same_keys && overlap(r->keys_in, key_bytes, r->keys_out, key_bytes)) ||
		(!same_values && overlap(r->values_in, value_bytes, r->values_out, value_bytes)) ||
		overlap(r->keys_out, key_bytes, r->values_out, value_bytes) ||
		overlap(r->keys_out, key_bytes, r->values_in, value_bytes) ||
		overlap(r->keys_in, key_bytes, r->values_out, value_bytes))
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT, "arrays overlap");
	return GPUSORT_OK;
}

/* Allocates device memory for a host array, and queues the copy of the input. */
GsStatus upload(GsDevice *device, Array *array)
{
	GsStatus status = GPUSORT_OK;
	if (array->in) {
		status = gpusort_device_alloc(device, nullptr, array->bytes, &array->device_in);
		if (!status)
			status =
				gpusort_device_check(device,
									 cudaMemcpyAsync(array->device_in, array->in, array->bytes,
													 cudaMemcpyHostToDevice, device->compute),
									 "copy an array to the device");
	}
	if (!status && array->out)
		status = gpusort_device_alloc(device, nullptr, array->bytes, &array->device_out);
	return status;
}

GsStatus download(GsDevice *device, const Array *array)
{
	if (!array->out)
		return GPUSORT_OK;
	return gpusort_device_check(device,
								cudaMemcpyAsync(array->out, array->device_out, array->bytes,
												cudaMemcpyDeviceToHost, device->compute),
								"copy an array from the device");
}

GsStatus run_sort(GsDevice *device, const GsSortRequest *r, const Array &keys,
				  const Array &values)
{
	GsSortJob job = {};
	job.key_width = r->key_width;
	job.value_width = r->value_width;
	job.begin_bit = r->begin_bit;
	job.end_bit = r->end_bit;
	job.order = r->order;
	job.descending = r->descending != 0;
	job.n = r->n;
	job.keys_in = keys.device_in;
	job.keys_out = keys.device_out;
	job.values_in = values.device_in;
	job.values_out = values.device_out;
	if (gpusort_sorter_path(&device->sorter, &job) == GPUSORT_PATH_AUTO)
		return gpusort_device_fail(device, GPUSORT_BAD_ARGUMENT,
								   "the requested path cannot sort this input");
	void *workspace;
	GsStatus status = gpusort_device_workspace(
		device, gpusort_sorter_workspace(&device->sorter, &job), &workspace);
	if (!status)
		status = gpusort_device_run(device, &job, workspace);
	return status;
}

} // namespace

GsStatus gpusort_device_sort_arrays(GsDevice *device, const GsSortRequest *request)
{
	GsStatus status = check_request(device, request);
	if (status || request->n == 0)
		return status;
	bool host = request->location == GPUSORT_HOST_ARRAYS;
	Array keys = {request->keys_in, request->keys_out, (size_t)request->n * request->key_width,
				  nullptr, nullptr};
	Array values = {request->values_in, request->values_out,
					(size_t)request->n * request->value_width, nullptr, nullptr};
	if (host) {
		status = upload(device, &keys);
		if (!status)
			status = upload(device, &values);
	} else {
		keys.device_in = const_cast<void *>(keys.in);
		keys.device_out = keys.out;
		values.device_in = const_cast<void *>(values.in);
		values.device_out = values.out;
	}
	if (!status)
		status = run_sort(device, request, keys, values);
	if (host && !status)
		status = download(device, &keys);
	if (host && !status)
		status = download(device, &values);

	/* Also waits after an error, since queued work uses the arrays. */
	if (!device->lost) {
		GsStatus end = gpusort_device_check(device, cudaStreamSynchronize(device->compute),
											"sort an array");
		if (!status)
			status = end;
	}
	if (host) {
		gpusort_device_free(device, nullptr, keys.device_in);
		gpusort_device_free(device, nullptr, keys.device_out);
		gpusort_device_free(device, nullptr, values.device_in);
		gpusort_device_free(device, nullptr, values.device_out);
	}
	return status;
}
