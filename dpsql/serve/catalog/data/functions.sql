-- PostgreSQL's functions over its catalog, as macros of the engine. A macro pgf_f stands for f.
CREATE MACRO pgf_quote_ident(a) AS CASE WHEN regexp_matches(a, '^[a-z_][a-z0-9_$]*$') THEN a ELSE '"' || replace(a, '"', '""') || '"' END;
CREATE MACRO pgx_type_name(n) AS CASE n
  WHEN 'bool' THEN 'boolean' WHEN 'int2' THEN 'smallint' WHEN 'int4' THEN 'integer'
  WHEN 'int8' THEN 'bigint' WHEN 'float4' THEN 'real' WHEN 'float8' THEN 'double precision'
  WHEN 'bpchar' THEN 'character' WHEN 'varchar' THEN 'character varying'
  WHEN 'varbit' THEN 'bit varying' WHEN 'char' THEN '"char"'
  WHEN 'time' THEN 'time without time zone' WHEN 'timetz' THEN 'time with time zone'
  WHEN 'timestamp' THEN 'timestamp without time zone'
  WHEN 'timestamptz' THEN 'timestamp with time zone' ELSE n END;
CREATE MACRO pgf_format_type(t, m) AS CASE WHEN t IS NULL THEN NULL ELSE coalesce((
  SELECT CASE WHEN ft.typelem <> 0 AND left(ft.typname, 1) = '_'
      THEN (SELECT pgx_type_name(fe.typname) FROM pg_type fe WHERE fe.oid = ft.typelem) || '[]'
      ELSE pgx_type_name(ft.typname) END
    || CASE WHEN coalesce(m, -1) < 0 THEN ''
       WHEN ft.typname = 'numeric' THEN '(' || ((m - 4) // 65536) || ',' || ((m - 4) % 65536) || ')'
       WHEN ft.typname IN ('varchar', 'bpchar') THEN '(' || (m - 4) || ')' ELSE '' END
  FROM pg_type ft WHERE ft.oid = t), '???') END;
CREATE MACRO pgf_version() AS 'PostgreSQL 15.0 (dpsql)';
CREATE MACRO pgf_current_database() AS getvariable('database');
CREATE MACRO pgx_login() AS getvariable('login');
CREATE MACRO pgf_current_schema() AS 'public';
CREATE MACRO pgf_current_user() AS (SELECT min(setting) FROM pg_settings cu WHERE cu.name = 'session_authorization');
CREATE MACRO pgf_current_schemas(a) AS CASE WHEN a THEN ['pg_catalog', 'public'] ELSE ['public'] END;
CREATE MACRO pgx_must_be(v, x, what) AS list_transform([{'v': v, 'x': x}], lambda s: CASE WHEN s.v IS NULL THEN error(what || ' "' || s.x || '" does not exist') ELSE s.v END)[1];
CREATE MACRO pgx_setting(a) AS coalesce((SELECT min(s[2]) FROM (SELECT unnest(getvariable('settings')::VARCHAR[][]) AS s) AS ss WHERE s[1] = lower(a)), (SELECT min(setting) FROM pg_settings cs WHERE cs.name = lower(a)));
CREATE MACRO pgf_current_setting(a) AS pgx_must_be(pgx_setting(a), a, '42704 configuration parameter'), (a, b) AS CASE WHEN b THEN pgx_setting(a) ELSE pgx_must_be(pgx_setting(a), a, '42704 configuration parameter') END;
CREATE MACRO pgf_set_config(a, b, c) AS pgx_set(a::VARCHAR, b::VARCHAR, c::BOOLEAN);
CREATE MACRO pgf_pg_backend_pid() AS CAST(getvariable('process') AS INTEGER);
CREATE MACRO pgf_pg_cancel_backend(a) AS pgx_stop(CAST(a AS BIGINT), false);
CREATE MACRO pgf_pg_terminate_backend(a) AS pgx_stop(CAST(a AS BIGINT), true), (a, b) AS pgx_stop(CAST(a AS BIGINT), b >= 0);
CREATE MACRO pgf_pg_is_in_recovery() AS false;
CREATE MACRO pgf_pg_is_wal_replay_paused() AS false;
CREATE MACRO pgf_pg_my_temp_schema() AS CASE WHEN len(getvariable('views')::VARCHAR[][]) > 0 THEN 99 ELSE 0 END::UINTEGER;
CREATE MACRO pgf_pg_is_other_temp_schema(a) AS false;
CREATE MACRO pgf_pg_advisory_unlock_all() AS {'pgx_void': ''};
CREATE MACRO pgf_pg_postmaster_start_time() AS TIMESTAMP '2000-01-01 00:00:00';
CREATE MACRO pgf_pg_conf_load_time() AS TIMESTAMP '2000-01-01 00:00:00';
CREATE MACRO pgf_txid_current() AS 1::BIGINT;
CREATE MACRO pgf_inet_server_addr() AS NULL::VARCHAR;
CREATE MACRO pgf_inet_client_addr() AS NULL::VARCHAR;
CREATE MACRO pgf_inet_server_port() AS NULL::INTEGER;
CREATE MACRO pgf_pg_blocking_pids(a) AS []::INTEGER[];
CREATE MACRO pgf_pg_listening_channels() AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_userbyid(a) AS coalesce((SELECT min(rolname) FROM pg_roles ru WHERE ru.oid = a), 'unknown (OID=' || a || ')');
CREATE MACRO pgx_visible(a) AS EXISTS (SELECT 1 FROM pg_class vc WHERE vc.oid = a AND vc.relnamespace IN (11, 2200)) OR EXISTS (SELECT 1 FROM (SELECT unnest(getvariable('views')::VARCHAR[][]) AS v) AS vs WHERE v[2] = a::VARCHAR);
CREATE MACRO pgf_pg_table_is_visible(a) AS pgx_visible(a);
CREATE MACRO pgf_pg_type_is_visible(a) AS EXISTS (SELECT 1 FROM pg_type vt WHERE vt.oid = a AND vt.typnamespace IN (11, 2200));
CREATE MACRO pgf_pg_function_is_visible(a) AS EXISTS (SELECT 1 FROM pg_proc vp WHERE vp.oid = a AND vp.pronamespace IN (11, 2200));
CREATE MACRO pgf_pg_opclass_is_visible(a) AS true;
CREATE MACRO pgf_pg_opfamily_is_visible(a) AS true;
CREATE MACRO pgf_pg_operator_is_visible(a) AS true;
CREATE MACRO pgf_pg_collation_is_visible(a) AS true;
CREATE MACRO pgf_pg_conversion_is_visible(a) AS true;
CREATE MACRO pgf_pg_statistics_obj_is_visible(a) AS true;
CREATE MACRO pgf_pg_ts_config_is_visible(a) AS true;
CREATE MACRO pgf_pg_ts_dict_is_visible(a) AS true;
CREATE MACRO pgf_pg_ts_parser_is_visible(a) AS true;
CREATE MACRO pgf_pg_ts_template_is_visible(a) AS true;
CREATE MACRO pgf_obj_description(a) AS (SELECT min(description) FROM pg_description od WHERE od.objoid = a AND od.objsubid = 0), (a, b) AS (SELECT min(description) FROM pg_description od WHERE od.objoid = a AND od.objsubid = 0 AND od.classoid = (SELECT oc.oid FROM pg_class oc WHERE oc.relname = b AND oc.relnamespace = 11));
CREATE MACRO pgf_col_description(a, b) AS (SELECT min(description) FROM pg_description cd WHERE cd.objoid = a AND cd.objsubid = b);
CREATE MACRO pgf_shobj_description(a, b) AS (SELECT min(description) FROM pg_shdescription sd WHERE sd.objoid = a);
CREATE MACRO pgx_columns(r, ks) AS (SELECT string_agg(pgf_quote_ident(xa.attname), ', ' ORDER BY list_position(ks, xa.attnum)) FROM pg_attribute xa WHERE xa.attrelid = r AND list_contains(ks, xa.attnum));
CREATE MACRO pgf_quote_literal(a) AS '''' || replace(a, '''', '''''') || '''';
CREATE MACRO pgf_parse_ident(a) AS list_transform(string_split(a, '.'), lambda z: trim(z, '"'));
CREATE MACRO pgx_constraint(a) AS (SELECT min(CASE kc.contype
    WHEN 'p' THEN 'PRIMARY KEY (' || pgx_columns(kc.conrelid, kc.conkey) || ')'
    WHEN 'u' THEN 'UNIQUE (' || pgx_columns(kc.conrelid, kc.conkey) || ')'
    WHEN 'f' THEN 'FOREIGN KEY (' || pgx_columns(kc.conrelid, kc.conkey) || ') REFERENCES '
      || (SELECT pgf_quote_ident(kr.relname) FROM pg_class kr WHERE kr.oid = kc.confrelid)
      || '(' || pgx_columns(kc.confrelid, kc.confkey) || ')' END)
  FROM pg_constraint kc WHERE kc.oid = a);
CREATE MACRO pgf_pg_get_constraintdef(a) AS pgx_constraint(a), (a, b) AS pgx_constraint(a);
CREATE MACRO pgx_index(a) AS (SELECT min('CREATE UNIQUE INDEX ' || pgf_quote_ident(ic.relname) || ' ON public.'
    || pgf_quote_ident(tc.relname) || ' USING btree (' || pgx_columns(gi.indrelid, gi.indkey) || ')')
  FROM pg_index gi JOIN pg_class ic ON ic.oid = gi.indexrelid JOIN pg_class tc ON tc.oid = gi.indrelid WHERE gi.indexrelid = a);
CREATE MACRO pgf_pg_get_indexdef(a) AS pgx_index(a), (a, b, c) AS CASE WHEN b = 0 THEN pgx_index(a) ELSE (SELECT min(ia.attname) FROM pg_attribute ia WHERE ia.attrelid = a AND ia.attnum = b) END;
CREATE MACRO pgf_pg_get_expr(a, b) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_viewdef(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_ruledef(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_triggerdef(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_partkeydef(a) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_functiondef(a) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_function_arguments(a) AS '';
CREATE MACRO pgf_pg_get_function_identity_arguments(a) AS '';
CREATE MACRO pgf_pg_get_function_arg_default(a, b) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_function_sqlbody(a) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_function_result(a) AS (SELECT min(pgx_type_name(rt.typname)) FROM pg_proc rp JOIN pg_type rt ON rt.oid = rp.prorettype WHERE rp.oid = a);
CREATE MACRO pgf_pg_get_statisticsobjdef(a) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_statisticsobjdef_columns(a) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_get_serial_sequence(a, b) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_relation_is_publishable(a) AS false;
CREATE MACRO pgf_pg_relation_is_updatable(a, b) AS 0;
CREATE MACRO pgf_pg_relation_size(a) AS 0::BIGINT, (a, b) AS 0::BIGINT;
CREATE MACRO pgf_pg_total_relation_size(a) AS 0::BIGINT;
CREATE MACRO pgf_pg_table_size(a) AS 0::BIGINT;
CREATE MACRO pgf_pg_indexes_size(a) AS 0::BIGINT;
CREATE MACRO pgf_pg_database_size(a) AS 0::BIGINT;
CREATE MACRO pgf_pg_tablespace_size(a) AS 0::BIGINT;
CREATE MACRO pgf_pg_tablespace_location(a) AS '';
CREATE MACRO pgf_pg_size_pretty(a) AS a || ' bytes';
CREATE MACRO pgf_pg_stat_get_numscans(a) AS 0::BIGINT;
CREATE MACRO pgf_pg_encoding_to_char(a) AS CASE a WHEN 6 THEN 'UTF8' ELSE '' END;
CREATE MACRO pgf_pg_char_to_encoding(a) AS CASE WHEN upper(a) IN ('UTF8', 'UNICODE') THEN 6 ELSE -1 END;
CREATE MACRO pgf_getdatabaseencoding() AS 'UTF8';
CREATE MACRO pgf_pg_client_encoding() AS 'UTF8';
CREATE MACRO pgf_array_lower(a, b) AS CASE WHEN b = 1 AND len(a) > 0 THEN 1 END;
CREATE MACRO pgf_array_upper(a, b) AS CASE WHEN b = 1 AND len(a) > 0 THEN len(a)::INTEGER END;
CREATE MACRO pgf_array_length(a, b) AS CASE WHEN b = 1 AND len(a) > 0 THEN len(a)::INTEGER END;
CREATE MACRO pgf_array_ndims(a) AS CASE WHEN len(a) > 0 THEN 1 END;
CREATE MACRO pgf_cardinality(a) AS len(a)::INTEGER;
CREATE MACRO pgf_array_to_string(a, b) AS array_to_string(a, b), (a, b, c) AS array_to_string(list_transform(a, lambda z: coalesce(z::VARCHAR, c)), b);
CREATE MACRO pgf_string_to_array(a, b) AS string_split(a, b);
CREATE MACRO pgf_array_remove(a, b) AS list_filter(a, lambda z: z <> b);
CREATE MACRO pgf_convert_from(a, b) AS a;
CREATE MACRO pgf_encode(a, b) AS a;
CREATE MACRO pgx_typeof(t) AS CASE WHEN starts_with(t, 'ENUM('''', '' ''') THEN '"char"' WHEN starts_with(t, 'ENUM(') THEN 'name' WHEN t = 'DECIMAL(10,0)' THEN 'regproc' WHEN starts_with(t, 'DECIMAL') THEN 'numeric' ELSE CASE t WHEN 'BOOLEAN' THEN 'boolean' WHEN 'TINYINT' THEN 'smallint' WHEN 'UTINYINT' THEN 'smallint' WHEN 'SMALLINT' THEN 'smallint' WHEN 'USMALLINT' THEN 'smallint' WHEN 'INTEGER' THEN 'integer' WHEN 'BIGINT' THEN 'bigint' WHEN 'UINTEGER' THEN 'oid' WHEN 'UBIGINT' THEN 'oid' WHEN 'HUGEINT' THEN 'numeric' WHEN 'FLOAT' THEN 'real' WHEN 'DOUBLE' THEN 'double precision' WHEN 'DATE' THEN 'date' WHEN 'TIME' THEN 'time without time zone' WHEN 'TIMESTAMP' THEN 'timestamp without time zone' WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'timestamp with time zone' WHEN 'INTERVAL' THEN 'interval' WHEN 'UUID' THEN 'uuid' WHEN 'BLOB' THEN 'bytea' WHEN 'JSON' THEN 'json' WHEN '"NULL"' THEN 'unknown' ELSE 'text' END END;
CREATE MACRO pgf_pg_typeof(a) AS CASE typeof(a) WHEN 'USMALLINT[]' THEN 'int2vector' WHEN 'UBIGINT[]' THEN 'oidvector' ELSE CASE WHEN ends_with(typeof(a), '[]') THEN pgx_typeof(typeof(a)[:-3]) || '[]' ELSE pgx_typeof(typeof(a)) END END;
CREATE MACRO pgx_fits(size, v) AS CASE WHEN size > 100000 THEN error('54000 requested length too large') ELSE v END;
CREATE MACRO pgf_repeat(a, n) AS list_transform([{'a': a::VARCHAR, 'n': n::BIGINT}], lambda s: pgx_fits(length(s.a) * s.n, repeat(s.a, least(s.n, 100000 // greatest(length(s.a), 1)))))[1];
CREATE MACRO pgf_lpad(a, n) AS list_transform([n::INTEGER], lambda s: pgx_fits(s, lpad(a::VARCHAR, least(s, 100000), ' ')))[1], (a, n, c) AS list_transform([n::INTEGER], lambda s: pgx_fits(s, lpad(a::VARCHAR, least(s, 100000), c)))[1];
CREATE MACRO pgf_rpad(a, n) AS list_transform([n::INTEGER], lambda s: pgx_fits(s, rpad(a::VARCHAR, least(s, 100000), ' ')))[1], (a, n, c) AS list_transform([n::INTEGER], lambda s: pgx_fits(s, rpad(a::VARCHAR, least(s, 100000), c)))[1];
CREATE MACRO pgx_series(a, b) AS unnest(generate_series(a, b))::INTEGER, (a, b, c) AS unnest(generate_series(a, b, c))::INTEGER;
CREATE MACRO pgf__pg_expandarray(a) AS unnest(list_transform(a, lambda v, i: {'x': v, 'n': i::INTEGER}));
CREATE MACRO pgf_has_table_privilege(a, b) AS CASE WHEN a IS NOT NULL THEN lower(b) LIKE '%select%' END, (a, b, c) AS CASE WHEN b IS NOT NULL THEN lower(c) LIKE '%select%' END;
CREATE MACRO pgf_has_any_column_privilege(a, b) AS CASE WHEN a IS NOT NULL THEN lower(b) LIKE '%select%' END, (a, b, c) AS CASE WHEN b IS NOT NULL THEN lower(c) LIKE '%select%' END;
CREATE MACRO pgf_has_column_privilege(a, b, c) AS CASE WHEN a IS NOT NULL THEN lower(c) LIKE '%select%' END, (a, b, c, d) AS CASE WHEN b IS NOT NULL THEN lower(d) LIKE '%select%' END;
CREATE MACRO pgf_has_schema_privilege(a, b) AS CASE WHEN a IS NOT NULL THEN lower(b) LIKE '%usage%' END, (a, b, c) AS CASE WHEN b IS NOT NULL THEN lower(c) LIKE '%usage%' END;
CREATE MACRO pgf_has_database_privilege(a, b) AS lower(b) LIKE '%connect%', (a, b, c) AS lower(c) LIKE '%connect%';
CREATE MACRO pgf_has_function_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO pgf_has_sequence_privilege(a, b) AS false, (a, b, c) AS false;
CREATE MACRO pgf_has_tablespace_privilege(a, b) AS false, (a, b, c) AS false;
CREATE MACRO pgf_has_type_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO pgf_has_language_privilege(a, b) AS false, (a, b, c) AS false;
CREATE MACRO pgf_pg_has_role(a, b) AS true, (a, b, c) AS true;
CREATE MACRO pgf_row_security_active(a) AS false;
CREATE MACRO pgf_acldefault(a, b) AS NULL::VARCHAR[];
CREATE MACRO pgf_aclexplode(a) AS unnest([]::STRUCT(grantor UINTEGER, grantee UINTEGER, privilege_type VARCHAR, is_grantable BOOLEAN)[]);
CREATE MACRO pgf_pg_partition_ancestors(a) AS NULL::UINTEGER;
CREATE MACRO pgf_pg_identify_object(a, b, c) AS NULL::VARCHAR;
CREATE MACRO pgf_pg_describe_object(a, b, c) AS NULL::VARCHAR;
CREATE MACRO pgt_pg_get_keywords() AS TABLE SELECT 'select' AS word, 'R' AS catcode, false AS barelabel, 'reserved' AS catdesc, '' AS baredesc;
CREATE MACRO pgt_pg_show_all_settings() AS TABLE SELECT * FROM pg_settings;
CREATE MACRO pgt_pg_partition_ancestors(a) AS TABLE SELECT 0::UINTEGER AS relid, 0::BIGINT AS depth WHERE false;
CREATE MACRO pgt_pg_partition_tree(a) AS TABLE SELECT 0::UINTEGER AS relid, 0::UINTEGER AS parentrelid, true AS isleaf, 0 AS level WHERE false;
CREATE MACRO pgt_aclexplode(a) AS TABLE SELECT 0::UINTEGER AS grantor, 0::UINTEGER AS grantee, '' AS privilege_type, false AS is_grantable WHERE false;
CREATE MACRO pgt_pg_options_to_table(a) AS TABLE SELECT ''::VARCHAR AS option_name, ''::VARCHAR AS option_value WHERE false;
CREATE MACRO pgf_format(f, a) AS replace(replace(f, '%s', coalesce(a::VARCHAR, '')), '%I', pgf_quote_ident(coalesce(a::VARCHAR, ''))), (f, a, b) AS printf(replace(f, '%I', '%s'), pgf_quote_ident(a::VARCHAR), pgf_quote_ident(b::VARCHAR));
CREATE MACRO pgx_plain(x) AS replace(replace(replace(x::VARCHAR, '"', ''), 'pg_catalog.', ''), 'public.', '');
CREATE MACRO pgx_regclass(x) AS coalesce(try_cast(x AS UINTEGER), (SELECT min(rc.oid) FROM pg_class rc WHERE rc.relname = pgx_plain(x)), (SELECT min(v[2]::UINTEGER) FROM (SELECT unnest(getvariable('views')::VARCHAR[][]) AS v) AS vs WHERE v[1] = pgx_plain(x)));
CREATE MACRO pgx_regtype(x) AS coalesce(try_cast(x AS UINTEGER), (SELECT min(rt.oid) FROM pg_type rt WHERE rt.typname = pgx_plain(x) OR (rt.typnamespace = 11 AND pgx_type_name(rt.typname) = lower(pgx_plain(x)))));
CREATE MACRO pgx_regproc(x) AS coalesce(try_cast(x AS UINTEGER), (SELECT min(rp.oid) FROM pg_proc rp WHERE rp.proname = pgx_plain(x)));
CREATE MACRO pgx_regnamespace(x) AS coalesce(try_cast(x AS UINTEGER), (SELECT min(rn.oid) FROM pg_namespace rn WHERE rn.nspname = replace(x::VARCHAR, '"', '')));
CREATE MACRO pgx_regrole(x) AS coalesce(try_cast(x AS UINTEGER), (SELECT min(rr.oid) FROM pg_roles rr WHERE rr.rolname = replace(x::VARCHAR, '"', '')));
CREATE MACRO pgx_regclass_name(x) AS coalesce((SELECT min(CASE WHEN nn.nspname IN ('pg_catalog', 'public') THEN pgf_quote_ident(nc.relname) ELSE nn.nspname || '.' || pgf_quote_ident(nc.relname) END) FROM pg_class nc JOIN pg_namespace nn ON nn.oid = nc.relnamespace WHERE nc.oid = pgx_regclass(x)), (SELECT min(pgf_quote_ident(v[1])) FROM (SELECT unnest(getvariable('views')::VARCHAR[][]) AS v) AS vs WHERE x::VARCHAR IN (v[1], v[2])), CASE WHEN x::VARCHAR = '0' THEN '-' ELSE x::VARCHAR END);
CREATE MACRO pgx_regtype_name(x) AS coalesce(nullif(pgf_format_type(pgx_regtype(x), NULL), '???'), CASE WHEN x::VARCHAR = '0' THEN '-' ELSE x::VARCHAR END);
CREATE MACRO pgx_regproc_name(x) AS coalesce((SELECT min(np.proname) FROM pg_proc np WHERE np.oid = pgx_regproc(x)), CASE WHEN x::VARCHAR = '0' THEN '-' ELSE x::VARCHAR END);
CREATE MACRO pgx_regnamespace_name(x) AS coalesce((SELECT min(ns.nspname) FROM pg_namespace ns WHERE ns.oid = pgx_regnamespace(x)), x::VARCHAR);
CREATE MACRO pgx_regrole_name(x) AS coalesce((SELECT min(nr.rolname) FROM pg_roles nr WHERE nr.oid = pgx_regrole(x)), x::VARCHAR);
CREATE MACRO pgx_as_json(x) AS {'pgx_json': x::VARCHAR};
CREATE MACRO pgx_as_jsonb(x) AS {'pgx_jsonb': x::VARCHAR};
CREATE MACRO pgx_as_name(x) AS {'pgx_name': x::VARCHAR};
CREATE MACRO pgx_as_varchar(x) AS {'pgx_varchar': x::VARCHAR}, (x, n) AS {'pgx_varchar': left(x::VARCHAR, n)};
CREATE MACRO pgx_as_bpchar(x) AS {'pgx_bpchar': x::VARCHAR}, (x, n) AS {'pgx_bpchar': rpad(x::VARCHAR, least(n, 100000), ' ')};
CREATE MACRO pgx_names(x, k) AS (SELECT list(CASE k WHEN 'regtype' THEN pgx_regtype_name(nl.v) WHEN 'regclass' THEN pgx_regclass_name(nl.v) WHEN 'regproc' THEN pgx_regproc_name(nl.v) WHEN 'regnamespace' THEN pgx_regnamespace_name(nl.v) ELSE pgx_regrole_name(nl.v) END ORDER BY nl.n) FROM (SELECT unnest(x) AS v, generate_subscripts(x, 1) AS n) AS nl);
CREATE MACRO pgf_host(a) AS a::VARCHAR;
CREATE MACRO pgf_oidvectortypes(a) AS coalesce(array_to_string(pgx_names(a, 'regtype'), ', '), '');
CREATE MACRO pgx_matched(s, p, g) AS CASE WHEN regexp_matches(s, p) THEN regexp_extract(s, p, g) END;
CREATE MACRO pgx_as_regclass(x) AS {'pgx_regclass': x, 'name': pgx_regclass_name(x)};
CREATE MACRO pgx_as_regtype(x) AS {'pgx_regtype': x, 'name': pgx_regtype_name(x)};
CREATE MACRO pgx_as_regnamespace(x) AS {'pgx_regnamespace': x, 'name': pgx_regnamespace_name(x)};
CREATE MACRO pgf_to_regclass(a) AS pgx_regclass(a);
CREATE MACRO pgf_to_regtype(a) AS pgx_regtype(a);
CREATE MACRO pgf_to_regproc(a) AS pgx_regproc(a);
CREATE MACRO pgf_to_regnamespace(a) AS pgx_regnamespace(a);
CREATE MACRO pgf_to_regrole(a) AS pgx_regrole(a);
CREATE MACRO pgf__pg_truetypid(a, t) AS a.atttypid;
CREATE MACRO pgf__pg_truetypmod(a, t) AS a.atttypmod;
CREATE MACRO pgf__pg_char_max_length(a, b) AS NULL::INTEGER;
CREATE MACRO pgf__pg_numeric_precision(a, b) AS NULL::INTEGER;
CREATE MACRO pgf__pg_numeric_scale(a, b) AS NULL::INTEGER;
CREATE MACRO pgf__pg_datetime_precision(a, b) AS NULL::INTEGER;
