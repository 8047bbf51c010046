//! The types and texts that are tried.

use pagemill_format::PgVersion;

/// Stands for NULL instead of a text.
pub const NULL: &str = "<null>";

/// Texts of one type.
pub struct Case {
    /// The type, as SQL writes it.
    pub type_name: &'static str,
    /// The first version that has it.
    pub since: PgVersion,
    /// The texts.
    pub texts: Vec<&'static str>,
}

/// Types that are made before.
pub const SETUP: &str = "
CREATE TYPE mood AS ENUM ('sad', 'o''k', 'very happy');
CREATE DOMAIN filled AS text NOT NULL;
CREATE DOMAIN short AS varchar(3);
CREATE DOMAIN shorter AS short NOT NULL;
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN ints AS int[];
CREATE DOMAIN tree AS pg_node_tree;
CREATE TYPE pair AS (a int, b text);
ALTER TYPE pair ADD ATTRIBUTE c numeric;
ALTER TYPE pair DROP ATTRIBUTE b;
ALTER TYPE pair ADD ATTRIBUTE d text;
CREATE TYPE nest AS (p pair, ps pair[], r numrange, m mood, f filled, s varchar(3), big int8);
CREATE TYPE nine AS (a int, b int, c int, d int, e int, f int, g int, h int, i text);
CREATE TYPE textrange AS RANGE (subtype = text, collation = \"C\");
CREATE TYPE words AS RANGE (subtype = text);
CREATE TYPE floats AS RANGE (subtype = float8);
";

fn case(type_name: &'static str, texts: &[&'static str]) -> Case {
    Case { type_name, since: PgVersion::V14, texts: texts.to_vec() }
}

/// Everything that is tried.
pub fn all() -> Vec<Case> {
    [trees()].into_iter().flatten().collect()
}

fn trees() -> Vec<Case> {
    vec![
        case(
            "int[]",
            &[
                "{}", " { } ", "{1,2,3}", "{1,NULL,-3}", "{{1,2},{3,4}}", "{{},{}}", "{{}}",
                "{{1},{}}", "{{1,2},{3}}", "{1,{2}}", "{{1},2}", "{1,}", "{,1}", "{1", "1}", "", "{",
                "{{1}", "{1}}", "{1} x", " {1} ", "{1 2}", "{\"1\"}", "{\"1\" }", "{ \"1\"x}",
                "{\"1\"\"2\"}", "{1\"2\"}", "[1:2]={1,2}", "[2]={1,2}", "[0:1]={1,2}",
                "[-2:-1][3:3]={{1},{2}}", " [ 1:2]={1,2}", "[1:2] = {1,2}", "[1:2]= {1,2}",
                "[1:2]{1,2}", "[1:2]={1}", "[1:1]={}", "[2:1]={}", "[1:2]={{1},{2}}", "[1:]={1}",
                "[:1]={1}", "[]={1}", "[1:2", "[1:2]", "[1:2]=", "[1:2]=1", "[+1:+1]={1}",
                "[2147483646:2147483647]={1,2}", "[2147483647:2147483647]={1}",
                "[-2147483648:-2147483648]={1}", "{{{{{{1}}}}}}", "{{{{{{{1}}}}}}}",
                "[1:1][1:1][1:1][1:1][1:1][1:1][1:1]={1}", "{null,NuLl}", "{\"null\"}", "{n\\ull}",
                "{a}", "{1,a", "{a}}", "{\\1}", "{\\", "{\"", "{\"\\", "{1,2}{", "{{1,2},{3,x}}",
                "{{1,2},{3}}x", "{1},{2}", "{;}", "[1:2]={1,2", "[1:2]={1,2}x", "{\t1\n,\r2 }",
                "[1:2][1:2]={{1,2},{3}}", "[1:3]={1,2,3,4}", "[1:1][1:1]={{1}}", "[1:1][1:1]={1}",
                NULL,
            ],
        ),
        case(
            "text[]",
            &[
                "{a,b}", "{\"a,b\",\"c\\\"d\",\"e\\\\f\"}", "{ a b , c }", "{\\ a\\ }", "{\"\"}",
                "{a\\,b}", "{é,漢}", "[5:6]={x,NULL}", "{null,\"null\"}", "{a\"b}", "{\"a\"b}",
                "{a{b}", "{a}b}", "{\"a\nb\"}", "{'a'}", "{(1\\,2)}",
            ],
        ),
        case("varchar(3)[]", &["{abc,ab}", "{abcd}", "{\"abc  \"}", "{{a},{b}}"]),
        case("int8[]", &["{1,2}", "{NULL,1}", "{NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,9}"]),
        case("numeric[]", &["{1,22,333}", "{{NULL,1},{2,3}}"]),
        case("box[]", &["{(1,2),(3,4);(5,6),(7,8)}", "{(1,2),(3,4),(5,6),(7,8)}"]),
        case("mood", &["sad", "o'k", "very happy", "Sad", "", " sad", "happy", NULL]),
        case("mood[]", &["{sad,\"very happy\",o'k}", "{very happy}", "{sad,bad}", "{NULL}"]),
        case("filled", &["x", "", NULL]),
        case("filled[]", &["{x}", "{NULL}", NULL]),
        case("shorter", &["abc", "abcd", "abc ", NULL]),
        case("shorter[]", &["{abc}", "{abcd}", "{a,NULL}"]),
        case("ints", &["{1,2}", "{x}", "x", NULL]),
        case("ints[]", &["{\"{1,2}\",\"{3}\"}", "{{1}}"]),
        case(
            "pair",
            &[
                "(1,2,x)", "(,,)", "(,,\"\")", "(1,2,\"a\"\"b\")", "(1,2,\"a\\\"b\")", "(1,2)",
                "(1,2,3,4)", "(1,2,x", "1,2,x)", "", "()", " (1,2,x) ", "(1,2,x) y", "( 1 ,2, x )",
                "(a,2,x)", "(1,2,a\\,b)", "(1,2,a\"b,c\"d)", "(1,2,\"\\", "(1,2,\"a)", "(1,2,x))",
                "((1,2,x)", "(1,2,)", "(1,2,漢)", NULL,
            ],
        ),
        case(
            "nest",
            &[
                "(\"(1,2,x)\",\"{\"\"(1,2,x)\"\",\"\"(3,,)\"\"}\",\"[1,2)\",sad,f,abc,5)",
                "(,,,,f,,)", "(,,,,,,)", "(,,,bad,f,,)", "(,,,,f,abcd,)", "(\"(1)\",,,,f,,)",
                "(,,,,f,,1)",
            ],
        ),
        case(
            "nine",
            &["(1,2,3,4,5,6,7,8,nine)", "(1,2,3,4,5,6,7,8,)", "(,,,,,,,,x)", "(,,,,,,,,)"],
        ),
        case("pair[]", &["{\"(1,2,x)\",\"(,,)\"}", "{(1\\,2\\,x)}", "{(1,2,x)}"]),
        case(
            "int4range",
            &[
                "[1,5)", "(1,5]", "[1,5]", "(1,5)", "(1,2)", "(1,1)", "[1,1]", "[1,1)", "empty",
                " EMPTY ", "emptyx", "empt", "[,5]", "(,)", "[,]", "(5,1)", "[5,1]", "[1,2147483647]",
                "(2147483647,)", "[2147483647,2147483647]", "(2147483646,2147483647)", "1,5", "[1,5",
                "[1 5]", "[1,2,3]", "[1,5] x", "[x,5]", "[1,x]", "", "[", "[1", "[1,", "[ 1 , 5 ]",
                " [1,5] ", "[\"1\",\"5\"]", "[\\1,5]", "[1,5}", "[\"1,5]", "[1,\\", "[\"1\"\"\",5]",
                "[5,x", "[x,5", NULL,
            ],
        ),
        case("int8range", &["[1,5]", "(9223372036854775806,)", "(9223372036854775807,)", "(3,2)"]),
        case(
            "numrange",
            &["[1,5]", "(1,2)", "(1,1)", "[1,1]", "(,3)", "[-5,-2)", "[2,-2]", "[100,20]", "[0,0]"],
        ),
        case(
            "textrange",
            &["[a,b)", "[b,a)", "[\"\",\"\"]", "(,\"a,b\"]", "[a b,c]", "[\",)\",z]", "[,)", "[A,a]"],
        ),
        case(
            "int4multirange",
            &[
                "{}", " { } ", "{[1,2),[3,4)}", "{[3,4),[1,2)}", "{[1,2],[3,4]}", "{[1,5),[2,3)}",
                "{empty}", "{empty,[1,2)}", "{[1,2),empty}", "{[1,2),}", "{,[1,2)}", "{[1,2)", "[1,2)",
                "{[1,2)} x", "{[1,2) [3,4)}", "{(1,1)}", "{[1,3),[2,)}", "{(,5),[3,)}",
                "{[1,2),[3,4),[5,6),[7,8),[9,10),[11,12),[13,14),[15,16),[17,18)}", "{x}", "", "{",
                "{[1,2}", "{[\"1\",2)}", "{[a,2)}", "{[1,2),[x", "{[2,1)}", "{EMPTY }", "{emptyx}",
                NULL,
            ],
        ),
        case("int8multirange", &["{}", "{[1,2),[3,4)}", "{(,)}", "{(,1),(5,)}"]),
        case(
            "nummultirange",
            &["{[1,2),[2,3)}", "{[1,2],(2,3)}", "{[1,2),(2,3)}", "{[1,2],[2,3]}", "{(,1),(1,)}",
              "{[1,1],[1,1]}", "{[1,3],[1,3)}", "{[2,3],[1,3)}"],
        ),
        case("int4range[]", &["{\"[1,5]\",empty,\"(,)\"}", "{[1,5]}"]),
        case("aclitem", &["postgres=r/postgres", "=r/postgres", "postgres=arwd*/postgres",
              "user postgres=r*w/postgres", "group postgres=r/postgres", "foo postgres=r/postgres",
              "user =r/postgres", "postgres=rz/postgres", "nobody=r/postgres", "postgres=r/nobody",
              "postgres=r/", "postgres r", "postgres=r/postgres x", " postgres = r/postgres",
              "\"postgres\"=r/postgres", "\"a\"\"b\"=r/postgres", "=/postgres", "", "=",
              "postgres=R*r/ postgres ", "postgres=arwdDxtXUCTc/postgres",
              "postgres=sA/postgres", "postgres=m/postgres", "postgres=**r*/postgres",
              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=r/postgres"]),
    ]
}
