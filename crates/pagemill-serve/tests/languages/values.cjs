// What node-postgres makes of values, as lines of text: prepared, with parameters, and where there are errors.
//
// The arguments are the file of questions, the socket's directory, its port, and a user. Invariant: a question that fails is a line
// that says so, and the next one is asked all the same.
"use strict";
const fs = require("node:fs");
const { inspect } = require("node:util");
const { Client, Query } = require("pg");

const [questions, host, port, user] = process.argv.slice(2);
const where = { host, port: Number(port), user, database: "postgres", options: "-c TimeZone=UTC" };
const LONG = "select count(*) from kinds a, kinds b, kinds c where a.id * 1.5 < -b.id - c.id";

const shown = (value) => inspect(value, { depth: 9, breakLength: Infinity, maxArrayLength: null, maxStringLength: null });
// Of what is no statement every server has its own words.
const words = (error) => (error.code === "42601" ? "" : error.message);
const failed = (error) => console.log(`failed: ${error.code} ${error.severity} ${words(error)}`);

async function ask(client, text, values, name) {
  console.log("==", text, shown(values));
  try {
    const answer = await client.query({ text, values, name, rowMode: "array" });
    console.log(answer.command, answer.rowCount, shown(answer.fields.map((field) => [field.name, field.dataTypeID, field.dataTypeModifier, field.format])));
    for (const row of answer.rows) console.log(shown(row));
  } catch (error) {
    failed(error);
  }
}

async function prepared(client) {
  const text = "select id, price from kinds where id = $1 and price = $2 and name like $3 and ok = $4 and u = $5";
  for (let turn = 0; turn < 3; turn++) {
    await ask(client, text, [8, "2.67", "n%", true, "c9f0f895-fb98-ab91-59f5-1fd0297e236d"], "found");
  }
  await ask(client, "select id from kinds where id = any($1) order by id", [[3, 1, null, 2]]);
  await ask(client, "select id from kinds where raw = $1", [Buffer.from("c81e728d9d4c2f636f067f89cc14862c", "hex")]);
  await ask(client, "select id from kinds where at > $1 order by id limit 2", [new Date("2024-01-02T00:00:00Z")]);
  await ask(client, "select id from kinds where doc @> $1", [{ a: 5 }]);
  await ask(client, "select $1::text[], $2::int, $3::text", [["a", null, 'b"'], null, "ä"]);
  await ask(client, "select id from kinds where id = $1", ["seven"]);
}

// A portal of which some rows are asked for at a time.
async function inParts(client) {
  console.log("== in parts");
  const query = new Query({ text: "select id from kinds where id > $1 order by id", values: [100], rows: 300, rowMode: "array" });
  let count = 0;
  query.on("row", (row) => (count++ % 100 === 0 ? console.log(row) : undefined));
  await new Promise((ended, broke) => query.on("end", ended).on("error", broke) && client.query(query));
  console.log(count);
}

async function severalAtOnce(client) {
  console.log("== several statements");
  const answers = await client.query("begin; select 1 as a; select 2 as b; commit");
  for (const answer of answers) console.log(answer.command, answer.rowCount, answer.rows);
  await client.query("select 1; select 1 / 0; select 2").catch(failed);
}

async function cancelled(client) {
  console.log("== cancelled");
  const other = new Client(where);
  const query = new Query(LONG);
  const ended = new Promise((done) => query.on("error", done).on("end", done));
  client.query(query);
  setTimeout(() => other.cancel(client, query), 300);
  failed(await ended);
  await ask(client, "select 41 + 1");
}

async function main() {
  const client = new Client(where);
  await client.connect();
  for (const line of fs.readFileSync(questions, "utf8").trim().split("\n")) {
    await ask(client, line);
    await ask(client, line, []);
  }
  for (const part of [prepared, inParts, severalAtOnce, cancelled]) await part(client);
  await client.end();
}

main();
