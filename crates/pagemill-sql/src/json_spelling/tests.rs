//! Forms as the parser gets them. What they mean is not known here: whether they parse, and as what.
//!
//! Each text is one that servers of PostgreSQL 17 and 18 take.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Tokenizer;

use super::*;

fn spelled(text: &str) -> String {
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location().unwrap();
    let tokens = as_calls(tokens);
    match Parser::new(&dialect).with_tokens_with_locations(tokens).parse_statements() {
        Ok(statements) => statements.iter().map(ToString::to_string).collect(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn forms_become_calls() {
    for (text, expected) in [
        (
            "select JSON_VALUE(j, '$.a' PASSING 1 AS x, b + c AS \"Y\" RETURNING numeric(4, 1) NULL ON EMPTY DEFAULT 1 + f(2) ON ERROR)",
            "SELECT JSON_VALUE(j, '$.a', \"/PASSING\"(1, 'x', b + c, 'Y'), \"/RETURNING\"(CAST(NULL AS NUMERIC(4,1))), \"/NULL\"('EMPTY'), \"/DEFAULT\"('ERROR', 1 + f(2)))",
        ),
        (
            "select j is json, j IS NOT JSON object WITH UNIQUE KEYS and true, (a || b) is json scalar",
            "SELECT j IN (\"/json\"()), j NOT IN (\"/JSON\"('OBJECT', 'UNIQUE')) AND true, (a || b) IN (\"/json\"('SCALAR'))",
        ),
        (
            "select json_query(j format json encoding utf8, p returning timestamp with time zone format json with conditional array wrapper keep quotes on scalar string empty object on empty empty on error)",
            "SELECT json_query(\"/format\"(j, 'utf8'), p, \"/returning\"(CAST(NULL AS TIMESTAMP WITH TIME ZONE), 'FORMAT'), \"/with\"('CONDITIONAL'), \"/keep\"(), \"/empty\"('empty', 'object'), \"/empty\"('error'))",
        ),
        (
            "select json_exists(json_query(j, '$' without wrapper), '$' true on error), json_value(a, b)",
            "SELECT json_exists(json_query(j, '$', \"/without\"('UNCONDITIONAL')), '$', \"/true\"('error')), json_value(a, b)",
        ),
        (
            "select * from t, json_table(t.j, '$[*]' as p passing 1 as x columns (id for ordinality, a int[] path '$.a' default '{}' on empty, \"B\" text format json omit quotes, c int exists path '$.c' unknown on error, nested path '$.d[*]' as n columns (e text))) as jt (x, y)",
            "SELECT * FROM t, \"json table\"(t.j, '$[*]', \"/as\"('p'), \"/passing\"(1, 'x'), \"/columns\"(\"/ORDINALITY\"('id'), \"/COLUMN\"('a', CAST(NULL AS INT[]), \"/path\"('$.a'), \"/default\"('empty', '{}')), \"/COLUMN\"('B', CAST(NULL AS TEXT), \"/format\"(), \"/omit\"()), \"/EXISTS\"('c', CAST(NULL AS INT), \"/path\"('$.c'), \"/unknown\"('error')), \"/nested\"('$.d[*]', \"/as\"('n'), \"/columns\"(\"/COLUMN\"('e', CAST(NULL AS TEXT)))))) AS jt (x, y)",
        ),
        (
            "select json_object('a': x FORMAT JSON, b value y null on null with unique keys returning varchar(3) format json encoding utf8), json_object(returning text), json_object('{a}')",
            "SELECT json_object('a' : \"/FORMAT\"(x), b VALUE y, \"/null\"(), \"/with\"('UNIQUE'), \"/returning\"(CAST(NULL AS VARCHAR(3)), 'FORMAT', 'utf8')), json_object(\"/returning\"(CAST(NULL AS TEXT))), json_object('{a}')",
        ),
        (
            "select json_array(select i from t format json returning text), json_array((select 1)), json_arrayagg(x order by y, z absent on null) over w from t",
            "SELECT json_array(\"/select\"((SELECT JSON_ARRAYAGG(\"/format\"(\"q\".\"a\"), \"/returning\"(CAST(NULL AS TEXT))) FROM (SELECT i FROM t) AS \"q\" (\"a\")))), json_array((SELECT 1)), json_arrayagg(x, \"/absent\"() ORDER BY y, z) OVER w FROM t",
        ),
        (
            "select json_value(a, b, c), x.json_value, json from t",
            "SELECT json_value(a, b, c), x.json_value, json FROM t",
        ),
    ] {
        assert_eq!(spelled(text), expected);
    }
}
