// Sequelize: what it reads of tables, columns, keys and indexes, and queries.
const { Sequelize } = require("sequelize");

const made = new Sequelize(process.env.PGDATABASE, process.env.PGUSER, process.env.PGPASSWORD, {
  host: process.env.PGHOST, port: +process.env.PGPORT, dialect: "postgres", logging: false,
});
const look = made.getQueryInterface();

async function check(name, act) {
  let saw;
  try {
    saw = await act();
  } catch (error) {
    saw = `FAILED ${error.message}`;
  }
  console.log(JSON.stringify({ check: name, saw }));
}

// Sequelize asks in no order.
const sorted = (found) => Object.fromEntries(Object.entries(found).sort());
const columns = async (table) =>
  sorted(Object.fromEntries(
    Object.entries(await look.describeTable(table)).map(([name, { primaryKey, ...rest }]) => [name, rest])));

(async () => {
  await check("authenticate", async () => (await made.authenticate()) ?? true);
  await check("tables", async () => (await look.showAllTables()).sort());
  await check("describeTable", async () => [await columns("orders"), await columns("customers")]);
  await check("primary keys", async () =>
    Object.entries(await look.describeTable("customers")).filter(([, c]) => c.primaryKey).map(([n]) => n));
  await check("indexes", async () =>
    (await look.showIndex("customers")).map(({ name, primary, unique, fields }) => ({ name, primary, unique, fields })));
  await check("tableExists", async () => [await look.tableExists("orders"), await look.tableExists("nowhere")]);
  await check("queries with values", async () => [
    (await made.query("select country from countries where population > :n order by 1", { replacements: { n: 100 } }))[0],
    (await made.query("select country from countries where population > $1 order by 1", { bind: [100] }))[0],
  ]);
  await made.close();
})();
