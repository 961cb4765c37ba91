// node-postgres with pg-cursor: prints one line of JSON for each check.
"use strict";
const { Client, Pool, types } = require("pg");
const Cursor = require("pg-cursor");

const PAGES = "SELECT page, count(*) AS n FROM visits GROUP BY page ORDER BY page";
const CHECKS = [];
const check = (name, run) => CHECKS.push([name, run]);
const fields = (found) => found.fields.map((f) => [f.name, f.dataTypeID]);
const sorts = (rows, first) =>
  rows.map((row) => Object.values(row).map((v, i) => (i < first ? v : v === null ? "null" : typeof v)));
const state = async (promise) => {
  try {
    await promise;
    return "no error";
  } catch (error) {
    return `error ${error.code}`;
  }
};

check("rows and their types", async (c) => {
  const found = await c.query(PAGES);
  return [fields(found), sorts(found.rows, 1), found.command, found.rowCount];
});
check("constants", async (c) => {
  const found = await c.query("SELECT 1 AS i, 'x' AS t, true AS b, NULL AS z, DATE '2024-02-29' AS d");
  return [fields(found), found.rows.map((r) => [r.i, r.t, r.b, r.z])];
});
check("rows as arrays", async (c) => {
  const found = await c.query({ text: "SELECT country FROM countries ORDER BY 1", rowMode: "array" });
  return found.rows;
});
check("parameters", async (c) => {
  const sql = "SELECT count(*) FROM orders WHERE placed >= $1 AND amount < $2 AND channel = $3";
  return sorts((await c.query(sql, ["2024-06-01", 250.5, "web"])).rows, 0);
});
check("a date object as a parameter", async (c) => {
  const sql = "SELECT count(*) FROM visits WHERE started >= $1";
  return sorts((await c.query(sql, [new Date(Date.UTC(2024, 5, 1))])).rows, 0);
});
check("parameters that are cast", async (c) =>
  (await c.query("SELECT $1::int4 + 1 AS a, $2::text AS b, $3::bool AS c", [41, "x", true])).rows);
check("a named statement", async (c) => {
  const found = [];
  for (const n of [20, 30, 40]) {
    const asked = { name: "older", text: "SELECT count(*) FROM customers WHERE age > $1", values: [n] };
    found.push(sorts((await c.query(asked)).rows, 0));
  }
  return found;
});
check("a cursor", async (c) => {
  const cursor = c.query(new Cursor(PAGES));
  const parts = [await cursor.read(2), await cursor.read(2), await cursor.read(9), await cursor.read(9)];
  await cursor.close();
  return [parts.map((part) => sorts(part, 1)), (await c.query("SELECT 1 AS x")).rows];
});
check("a cursor that is closed early", async (c) => {
  const cursor = c.query(new Cursor("SELECT country FROM countries WHERE population > $1 ORDER BY 1", [50]));
  const first = await cursor.read(2);
  await cursor.close();
  return [first, (await c.query("SELECT 2 AS x")).rows];
});
check("several statements", async (c) => {
  const found = await c.query("SELECT 1 AS a; SELECT 'b' AS b; SELECT 3 AS c");
  return found.map((one) => one.rows);
});
check("errors", async (c) => [
  await state(c.query("SELECT count(*) FROM nowhere")),
  await state(c.query("SELECT nothing FROM customers")),
  await state(c.query("SELECT $1::int4", ["x"])),
  await state(c.query("CREATE TABLE t (a int)")),
  (await c.query("SELECT 4 AS x")).rows,
]);
check("transactions", async (c) => {
  await c.query("BEGIN");
  const found = [await state(c.query("SELECT * FROM nowhere")), await state(c.query("SELECT 1"))];
  await c.query("ROLLBACK");
  return [...found, (await c.query("SELECT 5 AS x")).rows];
});
check("an error has its fields", async (c) => {
  try {
    await c.query("SELECT count(*) FROM nowhere");
  } catch (error) {
    return [error.severity, typeof error.message, Number(error.position)];
  }
  return [];
});
check("an empty query", async (c) => (await c.query("")).rows);
check("a column of oids", async (c) => {
  const sql = "SELECT oid, typname FROM pg_type WHERE typname IN ('int4', 'text') ORDER BY oid";
  const found = await c.query(sql);
  return [fields(found), found.rows];
});
check("a pool", async () => {
  const pool = new Pool({ max: 3, ssl: false });
  const asked = [1, 2, 3, 4, 5, 6].map((i) => pool.query("SELECT $1::int4 AS x", [i]));
  const found = (await Promise.all(asked)).map((one) => one.rows[0].x);
  await pool.end();
  return found;
});

(async () => {
  for (const [name, run] of CHECKS) {
    const client = new Client({ ssl: false });
    let saw;
    try {
      await client.connect();
      saw = await run(client);
    } catch (error) {
      saw = `FAILED ${error.message}`;
    }
    await client.end();
    console.log(JSON.stringify({ check: name, saw }));
  }
})();
