/*-------------------------------------------------------------------------
 *
 * parked_rows.c
 *		Sorted rows of an idle session, in a temporary file.
 *
 * The device process is no backend, so it does not use PostgreSQL's files: nobody would clean up
 * when it is killed.  Only the kernel knows the file, which has no name, so it is gone when the
 * device process closes it or ends.
 *
 * All chunks have the same room in the file, so that each is found by its index.  What a chunk
 * does not use of it is a hole.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file_perm.h"
#include "miscadmin.h"

#include "service/parked_rows.h"

/* As PG_TEMP_FILES_DIR: the server removes what a crash has left there. */
#define DIRECTORY	"base/pgsql_tmp"

/* The arrays of a chunk, and the numbers of GsSortedChunk. */
#define ARRAYS		4

typedef struct GsChunkArray
{
	void	   *address;
	uint64		room;
	uint64		bytes;			/* in use, at most 'room' */
} GsChunkArray;

bool
gpusort_parked_rows_create(GsParkedRows *rows)
{
	char		path[MAXPGPATH];

	rows->bytes = 0;
	snprintf(path, sizeof(path), DIRECTORY "/pgsql_tmp%d.gpusort", (int) MyProcPid);
	if (mkdir(DIRECTORY, pg_dir_create_mode) != 0 && errno != EEXIST)
		return false;
	rows->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, pg_file_create_mode);
	if (rows->fd < 0)
		return false;
	if (unlink(path) == 0)
		return true;
	gpusort_parked_rows_close(rows);
	return false;
}

void
gpusort_parked_rows_close(GsParkedRows *rows)
{
	int			save_errno = errno;

	(void) close(rows->fd);
	errno = save_errno;
}

/* Set the arrays of a chunk, whose numbers are known, and which arrays it has. */
static void
list_arrays(const GsSessionOptions * options, const GsSortedChunk * chunk, GsChunkArray *arrays)
{
	bool		variable = options->row_layout == GPUSORT_ROWS_VARIABLE;
	bool		ties = options->return_ties != 0;

	arrays[0].address = (void *) chunk;
	arrays[0].room = arrays[0].bytes = sizeof(*chunk);
	arrays[1].address = chunk->data;
	arrays[1].room = options->chunk_bytes;
	arrays[1].bytes = chunk->data_bytes;
	arrays[2].address = chunk->lengths;
	arrays[2].room = variable ? options->chunk_rows * sizeof(uint32) : 0;
	arrays[2].bytes = variable ? chunk->rows * sizeof(uint32) : 0;
	arrays[3].address = chunk->ties;
	arrays[3].room = ties ? gpusort_ties_words(options->chunk_rows) * sizeof(uint32) : 0;
	arrays[3].bytes = ties ? gpusort_ties_words(chunk->rows) * sizeof(uint32) : 0;
}

/* Returns where a chunk begins, of which the room of the arrays is known. */
static uint64
start_of_chunk(const GsChunkArray *arrays, uint64 index)
{
	uint64		room = 0;

	for (int a = 0; a < ARRAYS; a++)
		room += arrays[a].room;
	return index * room;
}

bool
gpusort_parked_rows_write(GsParkedRows *rows, const GsSessionOptions * options, uint64 index,
						  const GsSortedChunk * chunk)
{
	GsChunkArray arrays[ARRAYS];
	uint64		offset;

	list_arrays(options, chunk, arrays);
	offset = start_of_chunk(arrays, index);
	for (int a = 0; a < ARRAYS; offset += arrays[a++].room)
	{
		uint64		done = 0;

		while (done < arrays[a].bytes)
		{
			ssize_t		n = pwrite(rows->fd, (char *) arrays[a].address + done,
								   arrays[a].bytes - done, offset + done);

			if (n < 0 && errno == EINTR)
				continue;
			if (n == 0)
				errno = ENOSPC;
			if (n <= 0)
				return false;
			done += n;
		}
		rows->bytes += done;
	}
	return true;
}

/* Read an array of a chunk. */
static bool
read_array(int fd, const GsChunkArray *array, uint64 offset)
{
	uint64		done = 0;

	while (done < array->bytes)
	{
		ssize_t		n = pread(fd, (char *) array->address + done, array->bytes - done,
							  offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;		/* the file is too short */
		if (n <= 0)
			return false;
		done += n;
	}
	return true;
}

bool
gpusort_parked_rows_read(const GsParkedRows *rows, const GsSessionOptions * options, uint64 index,
						 GsSortedChunk * chunk)
{
	GsSortedChunk written = *chunk;
	GsChunkArray arrays[ARRAYS];
	uint64		offset;

	/* The numbers come first, and say how long the arrays are. */
	list_arrays(options, &written, arrays);
	offset = start_of_chunk(arrays, index);
	if (!read_array(rows->fd, &arrays[0], offset))
		return false;
	chunk->rows = written.rows;
	chunk->first_row = written.first_row;
	chunk->data_bytes = written.data_bytes;
	list_arrays(options, chunk, arrays);
	for (int a = 1; a < ARRAYS; a++)
	{
		offset += arrays[a - 1].room;
		if (!read_array(rows->fd, &arrays[a], offset))
			return false;
	}
	return true;
}
