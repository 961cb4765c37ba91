// drizzle-kit: a schema drawn from the tables ("pull").
const { spawnSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");

const place = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle-"));
const config = path.join(place, "drizzle.config.json");
fs.writeFileSync(config, JSON.stringify({
  dialect: "postgresql", out: place, dbCredentials: {
    host: process.env.PGHOST, port: +process.env.PGPORT, user: process.env.PGUSER,
    password: process.env.PGPASSWORD, database: process.env.PGDATABASE, ssl: false,
  },
}));
const program = path.join(process.env.NODE_PATH, "drizzle-kit", "bin.cjs");
const done = spawnSync(process.execPath, [program, "pull", "--config", config], {
  cwd: path.dirname(process.env.NODE_PATH), timeout: 60000, encoding: "utf-8",
});
const file = path.join(place, "schema.ts");
const schema = fs.existsSync(file) ? fs.readFileSync(file, "utf-8") : `FAILED ${done.stdout} ${done.stderr}`;
fs.rmSync(place, { recursive: true });
// It asks for tables in no order, and ends the last one with a line of its own.
const tables = schema.split("\n\n").filter((part) => part.includes("pgTable(")).sort();

function check(name, saw) {
  console.log(JSON.stringify({ check: name, saw }));
}

check("pull", tables.length ? tables.map((t) => t.replaceAll(".primaryKey()", "").trim()) : schema);
check("primary keys", tables.join("\n").split(".primaryKey()").length - 1);
