//! The types and texts that are tried.

use pagemill_format::PgVersion;

/// Stands for NULL instead of a text.
pub(crate) const NULL: &str = "<null>";

/// Texts of one type.
pub(crate) struct Case {
    /// The type, as SQL writes it.
    pub(crate) type_name: &'static str,
    /// The first version that has it.
    pub(crate) since: PgVersion,
    /// The texts.
    pub(crate) texts: Vec<&'static str>,
}

/// Types that are made before.
pub(crate) const SETUP: &str = "
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
CREATE SCHEMA odd;
CREATE SCHEMA \"O dd\";
CREATE TABLE odd.t (a int);
CREATE TABLE \"O dd\".\"T t\" (a int);
CREATE TABLE t (a int);
CREATE TABLE pg_class (a int);
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION twice(text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION once(int, varchar, mood[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION odd.once() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, PROCEDURE = int4eq);
CREATE OPERATOR odd.=== (LEFTARG = text, RIGHTARG = text, PROCEDURE = texteq);
CREATE ROLE \"Some One\";
CREATE TEXT SEARCH CONFIGURATION odd.conf (COPY = simple);
CREATE TYPE floats AS RANGE (subtype = float8);
";

fn case(type_name: &'static str, texts: &[&'static str]) -> Case {
    Case { type_name, since: PgVersion::V14, texts: texts.to_vec() }
}

/// Everything that is tried.
pub(crate) fn all() -> Vec<Case> {
    [trees(), documents(), geometry(), searches(), names(), paths(), moments(), markup()].into_iter().flatten().collect()
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

fn documents() -> Vec<Case> {
    let texts = [
        "null", "true", "false", "\"x\"", "1", "-0", "1.50", "-1e3", "1E+2", "1e-2", "01", "-", "1.", ".5",
        "1e", "1a", "+1", "--1", "[]", "{}", "[1,2,3]", "[1,]", "[,1]", "[1", "1]", "[1]]", "{\"a\":1}",
        "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{a:1}", "{1:2}", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
        "{\"bb\":1,\"a\":2,\"a\":3,\"ab\":[4,{\"z\":null}]}", " [ 1 , \"a\" ,\ttrue\n] ", "", " ",
        "tru", "truex", "nul", "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u00e9\"", "\"\\u0000\"",
        "\"\\ud83d\\ude00\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83dx\"", "\"\\ud83d\\ud83d\"",
        "\"\\ud83d\\n\"", "\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"", "\"a\tb\"", "\"a\nb\"", "\"é漢😀\"", "é", "[é]",
        "{\"é\":\"漢\",\"x\":[[],[[]],{}]}", "123456789012345678901234567890.123456", "1e131071",
        "1e131072", "1e-16383", "1e-16384", "[1.0,1.00,100,1e3,0.001]", "{\"a\":{\"b\":{\"c\":[1,\"x\",{}]}}}",
        "[\"a\",1,\"bcd\",2,\"efg\",[3],\"h\",{\"i\":4}]", "{\"\":1}", "[true,false,null,\"\"]", "\u{a0}1",
        "[1] x", "{} {}", "\"a\" \"b\"", "[[[[[[[[[[1]]]]]]]]]]", "{\"a\":1,\"a\":{\"b\":2}}", "[\"\\u0041\\u00DF\"]",
        LONG_ARRAY, LONG_OBJECT, NULL,
    ];
    vec![case("json", &texts), case("jsonb", &texts), case("jsonb[]", &["{\"{\\\"a\\\":1}\",1,NULL}", "{[1]}"])]
}

const LONG_ARRAY: &str = "[0,\"a\",2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,\
    27,28,29,30,31,32,\"x\",34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,\
    59,60,61,62,63,64,65,66,67,68]";

const LONG_OBJECT: &str = "{\"k0\":1,\"k1\":2,\"k2\":\"x\",\"k3\":[1],\"k4\":{},\"k5\":null,\"k6\":1.5,\
    \"k7\":1,\"k8\":2,\"k9\":\"x\",\"k10\":[1],\"k11\":{},\"k12\":null,\"k13\":1.5,\"k14\":1,\"k15\":2,\
    \"k16\":\"x\",\"k17\":[1],\"k18\":{},\"k19\":null,\"k20\":1.5,\"k21\":true,\"k22\":[[]]}";

fn geometry() -> Vec<Case> {
    let points = [
        "(1,2)", "1,2", " ( 1 , 2 ) ", "(1,2", "1,2)", "(1 2)", "", "(,)", "(1,2),(3,4)", "((1,2),(3,4))",
        "[(1,2),(3,4)]", "1,2,3,4", "(1,2,3,4)", "[1,2,3,4]", "((1,2),(3,4)", "[(1,2),(3,4))",
        "((1,2)(3,4))", "(3,4),(1,2)", "(1,4),(3,2)", "(1,2),(1,2)", "(1,2),(3,2)", "(1,2),(1,4)",
        "(0,0),(3,7)", "(1e400,2)", "(nan,inf)", "(NaN,-Infinity)", "(1e300,-1e300),(-1e300,1e300)",
        "(0x10,1)", "(x,1)", "(1,2)x", "(1,2),(3,4)x", "((1,2),(3,4),(5,6))", "[(1,2),(3,4),(5,6)]",
        "1,2,3,4,5,6", "((1,2))", "(1,2),(3,4),(5,6)", "( (1,2) , (3,4) )", "(1,2),(nan,4)", "(1,2),(3,4),",
        "(1.5e-7,2),(0,4)", "(-0,0)", "((0,0),(-0,-0))", "{1,2,3}", "{0,0,1}", "{1,2,3", "{1,2}",
        " { 1 , 2 , 3 } ", "{1,2,3}x", "{nan,0,1}", "{1e-7,0,1}", "<(1,2),3>", "((1,2),3)", "(1,2),3",
        "1,2,3", "<(1,2),-3>", "<(1,2),nan>", "<(1,2),3", "<1,2,3>", "((1,2),3", "(1,2)3", "<(1,2),3)",
        "((1,2),3>", "<(1,2),0> ", "(1,2),(3,4);", "1e-320,1", "1e-400,1", "(1,2),(inf,4)", "(infinity,1)",
        "(1,1e-400)", "(1,2),(3,4),(5)", "[(1,2)]", "(,1)", "(1,)", "1e,2", "1e5,2", ".5,5.", "(+1,-1)",
        "(1e200,1e200),(-1e200,-1e-200)", "((1,2),(3,4)) ", "[(1,2),(3,4)] ", "()", "[]", "(())", NULL,
    ];
    let types = ["point", "lseg", "box", "line", "path", "polygon", "circle"];
    types.iter().map(|name| case(name, &points)).collect()
}

fn searches() -> Vec<Case> {
    let texts = [
        "a b c", "", " ", "b a b", "a:1 b:2,3 a:2A", "'a b':1", "'it''s'", "a\\ b", "'a\\'b'", "a:", "a:x", "a:0",
        "a:1x", "a:1A2", "a:1AB", "a:1DA", "a:1,", "a:1,2,1B,1C", "a:16383", "a:16384", "a:99999", ":a", ":",
        "a::1", "'a", "''", "'a'b", "a\\", "a 'b c' d:3*", "a:1 a", "a a:1", "é 漢:2 z", "a\u{3000}b", "a\u{a0}b",
        "a\u{2003}b:1", "bb aa b a c:10,9,8", "a:3 ,b", "a&b", "a|b", "!a", "(a)", "a:1b,2c,3d,4a", "abc:5 ab:4",
        "a & b", "a | b & c", "(a | b) & c", "!a & !b", "!(a & b)", "!!a", "a <-> b", "a <2> b <-> c",
        "a <0> b", "a <16384> b", "a <16385> b", "a <99999999999999999999> b", "a <-> ", "a <->", "a <->b", "a <- > b",
        "a <x> b", "a:A & b:*", "a:AB*", "a:ABCD*", "a:* & b:d", "'a b' & c", "a b", "a &", "& a", "a & & b", "(a",
        "a)", "()", "(a)", "((a) | b)", "a & (b | (c & !d))", "a <-> (b | c)", "(a <-> b) <-> c", "a <-> (b <-> c)",
        "!a <-> b", "!", "( ", "a !b", "a:x & b", "a: & b", "a:1", "'a''b' | 'c\\'d'", "a\\&b", "é & 漢", "a|b|c|d",
        "a&b|c&d", "!a|b", "a & b <-> c | d",
        "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!a", "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!a", "a ( b", "a | ", "(a | ) b", ")",
        "((((((((((a))))))))))", NULL,
    ];
    vec![case("tsvector", &texts), case("tsquery", &texts)]
}

fn names() -> Vec<Case> {
    let common = [
        "-", "0", "23", "99999999999", "", " ", ".", "a.", ".a", "a..b", "\"", "\"a", "a b", "a.b.c.d", "nowhere.t",
        "nowhere.int4", "postgres.pg_catalog.int4", "other.pg_catalog.int4", "1a", "-1", NULL,
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    let all = |name, texts: &[&'static str]| case(name, &[&common[..], texts].concat());
    vec![
        all(
            "regclass",
            &["pg_class", "PG_CLASS", "\"PG_CLASS\"", "public.pg_class", "t", "odd.t", " odd . t ", "odd.x", "x",
              "\"O dd\".\"T t\"", "postgres.odd.t", "postgres.odd.x", "other.odd.t", "a\"\"b", "\"a\"\"b\""],
        ),
        all(
            "regtype",
            &["int4", "integer", "INT", "int[]", "integer[]", "int4[3][]", "_int4", "text array", "character varying",
              "character varying(10)", "varchar(5)[]", "char", "\"char\"", "timestamp", "timestamp(3)",
              "timestamp with time zone", "timestamp(3) with time zone", "time without time zone",
              "double  precision", "float", "float(10)", "float(30)", "numeric(10,2)", "bit varying", "bit(3)",
              "interval", "mood", "public.mood", "mood[]", "public.mood[]", "pg_catalog.int4", "nothing",
              "nothing[]", "odd.nothing", "json", "jsonb", "boolean", "pair", "\"pair\"", "Pair", "\"Pair\""],
        ),
        all(
            "regproc",
            &["now", "NOW", "pg_catalog.now", "twice", "once", "odd.once", "public.once", "nothing", "nowhere.now", "lower",
              "\"now\"", "int4in", "odd.int4in"],
        ),
        all(
            "regprocedure",
            &["now()", "now( )", "now", "now(", "now)", "twice(int)", "twice(integer)", "twice( text )", "twice(bool)",
              "once(int,varchar,mood[])", "once(int, character varying , public.mood[])", "once(int,)", "once(,int)",
              "odd.once()", "nowhere.once()", "nothing()", "twice(nothing)", "numeric(numeric,int)", "once(\"int\")",
              "twice(int) ", "twice(int) x", "twice((int)"],
        ),
        all(
            "regoper",
            &["===", "public.===", "odd.===", "pg_catalog.=", "=", "+", "!~~*", "nowhere.=", "||/", "pg_catalog.||/",
              "-|-", "~~~~"],
        ),
        all(
            "regoperator",
            &["+(int,int)", "=(int4,int4)", "===(int,int)", "===(text,text)", "odd.===(text,text)", "-(none,int)",
              "-(NONE,int)", "-(int)", "-(int,int,int)", "+(int,nothing)", "+", "@@(a", "/(int,int)",
              "pg_catalog.+(int,int)", "nowhere.+(int,int)"],
        ),
        all("regrole", &["postgres", "\"Some One\"", "POSTGRES", "nobody", "a.b"]),
        all("regnamespace", &["public", "\"O dd\"", "odd", "pg_catalog", "nothing", "a.b"]),
        all("regcollation", &["\"C\"", "c", "\"POSIX\"", "pg_catalog.\"C\"", "ucs_basic", "\"default\"", "nothing"]),
        all("regconfig", &["simple", "english", "odd.conf", "conf", "pg_catalog.simple"]),
        all("regdictionary", &["simple", "english_stem", "pg_catalog.simple", "nothing"]),
        case("regtype[]", &["{int4,text,\"character varying\"}"]),
    ]
}

fn paths() -> Vec<Case> {
    vec![case(
        "jsonpath",
        &[
            "$", "strict $", "lax $", "STRICT $", " $ ", "", " ", "strict", "$.a", "$.a.b.*", "$.\"a b\"", "$.**", "$.**{2}",
            "$.**{2 to 5}", "$.**{last}", "$.**{3 to last}", "$.**{last to 3}", "$.**{99999999999}", "$.**{a}", "$.**{1",
            "$[*]", "$[0]", "$[0,1 to last,last - 1,$.x to $.\"y z\"]", "$[]", "$[1", "$[1 to]", "$[last to 1]", "last",
            "$[$[last]]", "@", "@.a", "$ ? (@ > 1)", "$.a[*] ? (@.x > 1 && @.y == \"q\")", "$?(@ == 1 || @ == 2 && !(@ == 3))",
            "$ ? (exists (@.a ? (@ > 1)))", "$ ? ((@ > 1) is unknown)", "$ ? (!exists(@.a))", "$ ? (@ starts with \"a\")",
            "$ ? (@ starts with $v)", "$ ? (@ starts with 1)", "$ ? (@ like_regex \"^a\")", "$ ? (@ like_regex \"a\" flag \"ism\")",
            "$ ? (@ like_regex \"a\" flag \"q\")", "$ ? (@ like_regex \"a\" flag \"x\")", "$ ? (@ like_regex \"a\" flag \"xq\")",
            "$ ? (@ like_regex \"a\" flag \"z\")", "$ ? (@ like_regex \"a\" flag \"\")", "1 + 2 * 3 - 4 / 5 % 6", "(1 + 2) * 3",
            "-1", "+1", "- 1", "--1", "-$", "-$.a", "-(1)", "-(1 + 2)", "-0", "-1.50", "+-1", "-(-1)", "1 - -1", "-1.5e10",
            "$.a + $.b * -$.c", "-(2).abs()", "(-2).abs()", "$.abs()", "$.abs", "$.size().floor()", "$.type()", "$.double()",
            "$.ceiling()", "$.keyvalue()", "$.datetime()", "$.datetime(\"HH24\")", "$.datetime(1)", "$.type", "$.a.type().b",
            "1.type()", "(1).type()", "1..type()", "$.bigint()", "$.boolean()", "$.date()", "$.decimal()", "$.decimal(4)",
            "$.decimal(4,2)", "$.decimal(-4,+2)", "$.decimal(1,2,3)", "$.decimal(a)", "$.decimal(1,)", "$.integer()",
            "$.number()", "$.string()", "$.time()", "$.time(3)", "$.time_tz(2)", "$.timestamp()", "$.timestamp_tz(6)",
            "$.time(\"a\")", "$.date", "$.decimal", "$.time", "\"x\"", "null", "true", "false", "NULL", "True", "1", "0", "1.5", ".5",
            "1.", "1e5", "1e", "1e+", "1.5e-3", "01", "00", "000", "1a", "1ab", "1_000", "0x10", "0xg", "0x", "0b101", "0o17", "0o8", "1__0",
            "1_", "1.5a", "1.a", "1e5a", "1E5", "1.5e5b", "123abc", "$a", "$\"a b\"", "$a.b", "$a1_", "$ a", "$.a b", "$.a  b", "$.a\tb",
            "$.a,b", "$.a(b)", "a", "a.b", "$.", "$.1", "$.1a", "$.a1", "$..a", "$.a.", "$ $", "$ \"a\"", "$.\"a", "$.\"a\\\"b\"",
            "$.\"\\u0041\\u00e9\"", "$.\"\\ud83d\\ude00\"", "$.\"\\ud83d\"", "$.\"\\ude00\"", "$.\"\\u0000\"", "$.\"\\u12\"",
            "$.\"\\u{41}\"", "$.\"\\u{1F600}\"", "$.\"\\u{110000}\"", "$.\"\\u{}\"", "$.\"\\u{1234567}\"", "$.\"\\x41\"", "$.\"\\x4\"", "$.\"\\q\"",
            "$.\"\\b\\f\\n\\r\\t\\v\"", "$.\\u0041b", "$.a\\x42c", "$.\"a\\", "$.a\\", "$.\"\\u0041\\u12\"", "$.\"\\u0041\\q\"",
            "$./* c */a", "$.a/* c */.b", "$.a /* c */.b", "/* c */ $", "$ /* c", "$ /**/", "$.a/* c */", "$ == 1", "$ == 1 == 2",
            "$ > 1 && $ < 2", "$ == 1 || $ <> 2", "!($ == 1)", "! $ == 1", "!$", "($ == 1)", "(($ == 1))", "($ == 1).a", "($ == 1) + 1",
            "1 + ($ == 1)", "($ == 1) == 2", "(1)", "((1))", "(1).a[*]", "($.a).b", "($.a.b).c.d", "(1 == 1) is unknown", "1 is unknown",
            "($) is unknown", "!(1 == 1) is unknown", "exists ($.a)", "exists ($.a) && 1 == 1", "exists ($ == 1)", "exists $",
            "$ && $", "1 &&", "&& 1", "1 & 2", "1 | 2", "1 = 2", "$ # 1", "$:a", "$ ? (1)", "$ ? (@ == 1", "$ ? @ == 1", "$ ?",
            "$ ? (@ == 1) ? (@ == 2)", "$[0 ? (@ == 1)]", "$[@]", "$ ? ($[@.a] == 1)", "$ ? (@[last] == last)", "$.is.to.strict.lax.exists",
            "$.like_regex.flag.with.starts.unknown.last.true.null.false", "$.TRUE", "LAX $.A", "lax strict $", "$.é.漢", "\"é\"", "$é", "é",
            "$[1.5]", "$[\"a\"]", "$[1,2,3 to 4,5]", "$.a[0 to 1 to 2]", "$ ? (@.a == @.b).c", "1 == 1.0", "1 <> 2", "1 != 2", "1 ! = 2",
            "$.a ? (@ > 1 && (@ < 5 || @ == 7))", "$ {1}", "$*", "$.*[*].**", "$ * $", "$**", "$.a-b", "$.a -1", "$.a - 1", "{", "}", "[1]",
            "123456789012345678901234567890.5", "1e200000", "-\"a\"", "-null", "+$.a.b", NULL,
        ],
    ), case("jsonpath[]", &["{$,\"$.a\"}"])]
}

fn moments() -> Vec<Case> {
    vec![
        case("date", &["2020-01-31", "infinity", "x", "2020-02-30", NULL]),
        case("timestamp(2)[]", &["{\"2020-01-01 00:00:00.126\",infinity}", "{x}"]),
        case("interval day to second(1)", &["1 day 02:03:04.56", "x"]),
        case(
            "daterange",
            &["[2020-01-01,2020-01-31]", "(2020-01-01,2020-01-02)", "(2020-01-01,2020-01-03)", "[2020-01-01,infinity]",
              "(-infinity,2020-01-01]", "(infinity,infinity)", "[infinity,infinity]", "[5874897-12-31,5874897-12-31]",
              "[2020-01-02,2020-01-01]", "[x,)", "(,)"],
        ),
        case("tsrange", &["[2020-01-01 00:00,\"2020-01-02 12:00\")", "(2020-01-01,2020-01-01)", "[2020-01-02,2020-01-01]"]),
        case("tstzrange", &["[2020-01-01 00:00+02,2020-01-02 12:00+00]", "[,infinity]"]),
        case("datemultirange", &["{[2020-01-01,2020-01-02],[2020-01-03,2020-01-05]}", "{(-infinity,infinity)}"]),
        case("tsmultirange", &["{}", "{[2020-01-01,2020-01-02),[2020-01-02,2020-01-03)}", "{(,2020-01-01),[2021-01-01,)}"]),
        case("tstzmultirange", &["{[2020-01-01,2020-01-02),[2020-01-01 12:00,2020-01-03)}"]),
        case("floats", &["[1.5,NaN]", "(NaN,NaN)", "[NaN,1]", "[-0,0]"]),
        case("money", &["$1,234.56", "(1)", "x"]),
    ]
}

fn markup() -> Vec<Case> {
    vec![case(
        "xml",
        &[
            "", " ", "x", "<a/>", "<a></a>", "<a>x</a>", "<a/><b/>", "x<a/>y", "<a", "<a>", "</a>", "<a></b>", "<a><b></a></b>", "<a b='1'/>",
            "<a b=\"1\" c='2'/>", "<a b=1/>", "<a b/>", "<a b='1' b='2'/>", "<a b='1'c='2'/>", "<a b='<'/>", "<a b='&lt;'/>", "<a b='x/>",
            "< a/>", "<a />", "<a\n/>", "<1/>", "<a:b/>", "<a:b xmlns:a='x'/>", "<é/>", "<a.b-c_d/>", "&amp;", "&lt;&gt;&quot;&apos;", "&foo;", "&", "a & b",
            "&#65;", "&#x41;", "&#0;", "&#xFFFE;", "&#x110000;", "&#x;", "&#65", "<!-- c -->", "<!-- a--b -->", "<!-- a --->", "<!--", "<![CDATA[<a>&]]>",
            "<a><![CDATA[x]]></a>", "<![CDATA[x", "]]>", "<?pi data?>", "<?pi?>", "<?pi", "<?xml?>", "<?xml version='1.0'?>", "<?xml version='1.0'?><a/>",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><a/>", "<?xml version='1.0' standalone='yes'?><a/>", "<?xml version='1.0' standalone='maybe'?><a/>",
            "<?xml version='1.0' standalone='no' encoding='x'?>", " <?xml version='1.0'?><a/>", "<a/><?xml version='1.0'?>", "<?xml-stylesheet href='x'?><a/>",
            "<?XML x?>", "<!DOCTYPE a><a/>", "<!DOCTYPE a><a/><b/>", "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "<!DOCTYPE a><a/>x", "x<!DOCTYPE a><a/>",
            "<!DOCTYPE a>", "<!-- c --><!DOCTYPE a><a/>", "<a/><!DOCTYPE a>", "<a>\u{1}</a>", "\u{FFFF}", "<a b='\u{2}'/>", "<a xmlns='x'/>", "<a>漢字</a>",
            "<a b = '1' />", "<a b='1\n2'/>", "<a>]]</a>", "<a>>]]&gt;</a>", "<!ELEMENT a>", "<a/ >", "<a></a >", "</a ", "<a><b/></a><!-- x -->y", NULL,
        ],
    )]
}
