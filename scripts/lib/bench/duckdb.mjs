// duckdb.mjs DIRECTORY
//	Answer queries with DuckDB, of which npm has installed @duckdb/node-api below DIRECTORY.
//
// Each line of standard input is a query as a JSON string.  Each answer is a line, a JSON
// object with the rows, whose values are strings, and the milliseconds, or an error.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const { DuckDBInstance } = createRequire(process.argv[2] + '/')('@duckdb/node-api');
const connection = await (await DuckDBInstance.create(':memory:')).connect();

for await (const line of createInterface({ input: process.stdin })) {
	let answer;

	try {
		const start = process.hrtime.bigint();
		const reader = await connection.runAndReadAll(JSON.parse(line));
		const ms = Number(process.hrtime.bigint() - start) / 1e6;

		answer = { ms, rows: reader.getRows().map((row) => row.map(String)) };
	} catch (error) {
		answer = { error: String(error) };
	}
	console.log(JSON.stringify(answer));
}
