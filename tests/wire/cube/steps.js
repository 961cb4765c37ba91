// What a person does in Cube, through its API: connect, read the schema, model it, chart.
//
// Prints one line of JSON for each step. Values of private tables are shown as their types. Cube's
// own SQL interface needs a native library that npm does not have; nothing here speaks through it.

const { ApiGateway } = require("@cubejs-backend/api-gateway");
const { PostgresDriver } = require("@cubejs-backend/postgres-driver");
const { ScaffoldingTemplate } = require("@cubejs-backend/schema-compiler");
const { CubejsServerCore } = require("@cubejs-backend/server-core");
const express = require("express");

ApiGateway.prototype.createSQLServerInstance = () => ({});

// Values of private tables are shown as they are where noise is less than a chart shows (STEPS_EXACT).
const kind = (value) =>
  process.env.STEPS_EXACT ? value : value === null ? "null" : /^-?[\d.]+(e[+-]?\d+)?$/.test(String(value)) ? "number" : typeof value;

// The key that Cube wants of a cube with joins; a person adds it to what the scaffold drew.
const KEYS = { Orders: "customer_id", Visits: "customer_id", Customers: "customer_id", Countries: "country" };
const keyed = (file) => {
  const cube = file.fileName.replace(".js", "");
  const key = `key: { sql: \`${KEYS[cube]}\`, type: \`string\`, primaryKey: true, shown: true },`;
  return { fileName: file.fileName, content: file.content.replace("dimensions: {", `dimensions: { ${key}`) };
};

class Project {
  constructor() {
    this.driver = new PostgresDriver({});
    this.files = [];
  }

  async schema() {
    this.found = await this.driver.tablesSchema();
    const tables = Object.entries(this.found.public);
    return tables.map(([table, columns]) => [table, columns.map((c) => [c.name, c.type]).sort()]).sort();
  }

  scaffold() {
    const drawn = new ScaffoldingTemplate(this.found, this.driver);
    const names = Object.keys(this.found.public).sort();
    const files = drawn.generateFilesByTableNames(names.map((name) => ["public", name]));
    this.files = files.map(keyed);
    return files.map((f) => [f.fileName, f.content.split(/\s+/).sort()]).sort();
  }

  async serve() {
    const core = new CubejsServerCore({
      dbType: "postgres", apiSecret: "a secret of this test", devServer: false, telemetry: false,
      cacheAndQueueDriver: "memory", scheduledRefreshTimer: false, logger: () => {},
      repositoryFactory: () => ({ dataSchemaFiles: async () => this.files, localPath: () => "." }),
      driverFactory: () => this.driver, checkAuth: () => {},
    });
    const app = express();
    app.use(express.json());
    await core.initApp(app);
    const server = await new Promise((resolve) => {
      const opened = app.listen(0, "127.0.0.1", () => resolve(opened));
    });
    this.base = `http://127.0.0.1:${server.address().port}/cubejs-api/v1`;
  }

  async call(path, query) {
    const body = query && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query }) };
    for (let turn = 0; turn < 60; turn += 1) {
      const said = await fetch(this.base + path, body);
      const found = await said.json();
      if (found.error !== "Continue wait") return [said.status, found];
    }
    throw new Error("no answer");
  }

  async cubes() {
    const [status, found] = await this.call("/meta");
    const shown = (c) => [c.name, c.measures.map((m) => m.name), c.dimensions.map((d) => [d.name, d.type]).sort()];
    return [status, found.cubes.map(shown)];
  }

  // Each row with its dimensions as they are, and its measures as their types.
  async chart(query) {
    const [status, found] = await this.call("/load", query);
    if (status !== 200) return [status, String(found.error)];
    const shown = (row) =>
      Object.entries(row).map(([name, value]) => [name, (query.measures || []).includes(name) ? kind(value) : value]);
    const rows = found.data.map(shown);
    return [status, query.order ? rows : rows.map((r) => JSON.stringify(r)).sort()];
  }

  async samples() {
    const [status, found] = await this.call("/load", { ungrouped: true, dimensions: ["Orders.key", "Orders.channel"], limit: 5 });
    return [status, status === 200 ? found.data.length : found.error];
  }
}

const channels = [{ member: "Orders.channel", operator: "equals", values: ["web", "shop"] }];
const CHARTS = {
  "a table of groups": { measures: ["Orders.count", "Orders.amount"], dimensions: ["Orders.channel"], filters: channels },
  "bars": { measures: ["Visits.count"], dimensions: ["Visits.page"], order: { "Visits.page": "asc" } },
  "a time series by month": {
    measures: ["Visits.count"], timeDimensions: [{ dimension: "Visits.started", granularity: "month" }],
    order: { "Visits.started": "asc" },
  },
  "a time range": {
    measures: ["Orders.count", "Orders.amount"],
    timeDimensions: [{ dimension: "Orders.placed", granularity: "month", dateRange: ["2024-02-01", "2024-05-31"] }],
    order: { "Orders.placed": "asc" },
  },
  "a number": { measures: ["Orders.amount"] },
  "a join": {
    measures: ["Orders.count"], dimensions: ["Customers.country"], order: { "Customers.country": "asc" },
  },
  "a filter on a measure": {
    measures: ["Visits.count"], dimensions: ["Visits.page"], order: { "Visits.page": "asc" },
    filters: [{ member: "Visits.count", operator: "gt", values: ["-1000000"] }],
  },
  "filter values": { dimensions: ["Orders.channel"], filters: channels },
  "a public table": { dimensions: ["Countries.continent", "Countries.country"], order: { "Countries.country": "asc" } },
  "a public count": { measures: ["Countries.count"], dimensions: ["Countries.continent"], order: { "Countries.continent": "asc" } },
};

async function main() {
  const project = new Project();
  const steps = {
    "connect": async () => (await project.driver.testConnection()) === undefined || "connected",
    "schema": () => project.schema(),
    "scaffold": async () => project.scaffold(),
    "cubes": async () => {
      await project.serve();
      return project.cubes();
    },
    ...Object.fromEntries(Object.entries(CHARTS).map(([name, query]) => [name, () => project.chart(query)])),
    "samples of a private table": () => project.samples(),
  };
  for (const [check, step] of Object.entries(steps)) {
    let saw;
    try {
      saw = await step();
    } catch (error) {
      saw = `FAILED ${error}`;
    }
    process.stdout.write(`${JSON.stringify({ check, saw })}\n`);
  }
  process.exit(0);
}

main();
