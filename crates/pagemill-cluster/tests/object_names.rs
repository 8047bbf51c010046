//! Object names of a small database full of overloads, shadowed built-ins and odd spellings, with
//! `search_path` as it comes: `"$user", public`. Objects like these were made on PostgreSQL 14 to
//! 18, and the expected texts are what those servers printed; only the names with a missing part
//! (`???`), where a server gives up with an error, follow a rule of this project.

use pagemill_cluster::names::{
    CollationRow, GlobalRow, NameCatalog, NameRows, NameSettings, NamedRow, OperatorRow, ProcRow,
    TypeRow,
};
use pagemill_format::{Oid, PgVersion};
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

const CATALOG: u32 = 11;
const PUBLIC: u32 = 2200;
/// The schema of the role `postgres`, before `public` in the search path.
const OWN: u32 = 16390;
/// A schema outside of the search path.
const OTHER: u32 = 16391;
/// A schema outside of the search path, named `select`.
const SELECT: u32 = 16393;
const ARRAY_HANDLER: u32 = 6179;

fn bytes(name: &str) -> Box<[u8]> {
    name.as_bytes().into()
}

fn global(rows: &[(u32, &str)]) -> Vec<GlobalRow> {
    rows.iter().map(|(oid, name)| GlobalRow { oid: Oid(*oid), name: bytes(name) }).collect()
}

fn named(rows: &[(u32, &str, u32)]) -> Vec<NamedRow> {
    let row = |(oid, name, namespace): &(u32, &str, u32)| NamedRow {
        oid: Oid(*oid),
        name: bytes(name),
        namespace: Oid(*namespace),
    };
    rows.iter().map(row).collect()
}

#[derive(Default)]
struct Nasty {
    reads: AtomicUsize,
}

impl Nasty {
    fn read<T>(&self, rows: Vec<T>) -> Result<Vec<T>, Infallible> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(rows)
    }
}

impl NameRows for Nasty {
    type Error = Infallible;

    fn namespaces(&self) -> Result<Vec<GlobalRow>, Infallible> {
        self.read(global(&[
            (CATALOG, "pg_catalog"),
            (PUBLIC, "public"),
            (OWN, "postgres"),
            (OTHER, "other"),
            (SELECT, "select"),
        ]))
    }

    fn roles(&self) -> Result<Vec<GlobalRow>, Infallible> {
        self.read(global(&[(10, "postgres"), (20, "My Role"), (21, "table"), (22, "json_value")]))
    }

    fn classes(&self) -> Result<Vec<NamedRow>, Infallible> {
        self.read(named(&[
            (1259, "pg_class", CATALOG),
            (30, "t", OWN),
            (31, "t", PUBLIC),
            (32, "t", OTHER),
            (33, "pg_class", PUBLIC),
            (34, "Tab le", PUBLIC),
            (35, "from", SELECT),
            (36, "x\"y", PUBLIC),
            (37, "json_table", PUBLIC),
            (38, "orphan", 77),
        ]))
    }

    fn types(&self) -> Result<Vec<TypeRow>, Infallible> {
        let base = (0, 0, b'x');
        let array = |element| (element, ARRAY_HANDLER, b'x');
        let rows = [
            (18, "char", CATALOG, (0, 0, b'p')),
            (19, "name", CATALOG, (18, 6180, b'p')),
            (20, "int8", CATALOG, (0, 0, b'p')),
            (23, "int4", CATALOG, (0, 0, b'p')),
            (25, "text", CATALOG, base),
            (30, "oidvector", CATALOG, (26, ARRAY_HANDLER, b'p')),
            (114, "json", CATALOG, base),
            (1009, "_text", CATALOG, array(25)),
            (1015, "_varchar", CATALOG, array(1043)),
            (1043, "varchar", CATALOG, base),
            (1560, "bit", CATALOG, base),
            (60, "integer", PUBLIC, base),
            (61, "text", PUBLIC, base),
            (62, "char", PUBLIC, base),
            (63, "mood", OTHER, base),
            (64, "_mood", OTHER, array(63)),
            (65, "bit", PUBLIC, base),
            (66, "_bit", PUBLIC, array(65)),
            (67, "Typ e", SELECT, base),
            (68, "dom", PUBLIC, base),
            (69, "_gone", PUBLIC, array(99)),
        ];
        let row = |(oid, name, namespace, (element, subscript, storage))| TypeRow {
            oid: Oid(oid),
            name: bytes(name),
            namespace: Oid(namespace),
            element: Oid(element),
            subscript: Oid(subscript),
            storage,
        };
        self.read(rows.into_iter().map(row).collect())
    }

    fn procs(&self) -> Result<Vec<ProcRow>, Infallible> {
        let rows: [(u32, &str, u32, &[u32]); 14] = [
            (100, "now", CATALOG, &[]),
            (101, "now", PUBLIC, &[]),
            (102, "f", PUBLIC, &[23]),
            (103, "f", PUBLIC, &[25]),
            (104, "g", OWN, &[23]),
            (105, "g", PUBLIC, &[23]),
            (106, "g", OTHER, &[23]),
            (107, "h", PUBLIC, &[23]),
            (108, "h", OTHER, &[25]),
            (109, "multi", OWN, &[23]),
            (110, "multi", PUBLIC, &[23]),
            (111, "multi", PUBLIC, &[23, 23]),
            (112, "select", PUBLIC, &[67, 62, 18, 63, 64, 68, 66, 1560, 61, 25, 1015, 30]),
            (113, "lost", OTHER, &[99, 0]),
        ];
        let row = |(oid, name, namespace, args): (u32, &str, u32, &[u32])| ProcRow {
            oid: Oid(oid),
            name: bytes(name),
            namespace: Oid(namespace),
            args: args.iter().copied().map(Oid).collect(),
        };
        self.read(rows.into_iter().map(row).collect())
    }

    fn operators(&self) -> Result<Vec<OperatorRow>, Infallible> {
        let rows = [
            (200, "+", CATALOG, 23, 23),
            (201, "+", PUBLIC, 23, 23),
            (202, "<#@>", OWN, 23, 23),
            (203, "<#@>", PUBLIC, 23, 23),
            (204, "<#@>", OTHER, 23, 20),
            (205, "@#@", PUBLIC, 0, 23),
            (206, "@#@", PUBLIC, 23, 23),
            (207, "***", SELECT, 23, 23),
            (208, "!!!", PUBLIC, 0, 23),
        ];
        let row = |(oid, name, namespace, left, right)| OperatorRow {
            oid: Oid(oid),
            name: bytes(name),
            namespace: Oid(namespace),
            left: Oid(left),
            right: Oid(right),
        };
        self.read(rows.into_iter().map(row).collect())
    }

    fn collations(&self) -> Result<Vec<CollationRow>, Infallible> {
        let rows = [
            (300, "C", CATALOG, b'c', -1),
            (301, "C", PUBLIC, b'c', 6),
            (302, "spec", PUBLIC, b'c', 6),
            (303, "spec", PUBLIC, b'c', -1),
            (304, "spec", CATALOG, b'c', 8),
            (305, "de-x-icu", CATALOG, b'i', -1),
        ];
        let row = |(oid, name, namespace, provider, encoding)| CollationRow {
            oid: Oid(oid),
            name: bytes(name),
            namespace: Oid(namespace),
            provider,
            encoding,
        };
        self.read(rows.into_iter().map(row).collect())
    }

    fn ts_configs(&self) -> Result<Vec<NamedRow>, Infallible> {
        self.read(named(&[
            (400, "english", CATALOG),
            (401, "english", PUBLIC),
            (402, "mycfg", PUBLIC),
            (403, "mycfg", OTHER),
            (404, "Order", PUBLIC),
        ]))
    }

    fn ts_dicts(&self) -> Result<Vec<NamedRow>, Infallible> {
        self.read(named(&[(500, "simple", CATALOG), (501, "d2", OWN), (502, "d2", PUBLIC)]))
    }
}

const UTF8: i32 = 6;
const LATIN10: i32 = 17;

fn nasty(version: PgVersion) -> NameCatalog<Nasty> {
    NameCatalog::new(Nasty::default(), NameSettings::new(version, UTF8))
}

type Write = fn(&NameCatalog<Nasty>, Oid, &mut Vec<u8>) -> Result<(), Infallible>;

fn printed(names: &NameCatalog<Nasty>, write: Write, oid: u32) -> String {
    let mut out = Vec::new();
    let Ok(()) = write(names, Oid(oid), &mut out);
    String::from_utf8(out).unwrap()
}

fn check(write: Write, expected: &[(u32, &str)]) {
    let names = nasty(PgVersion::V15);
    for (oid, text) in expected {
        assert_eq!(printed(&names, write, *oid), *text, "{oid}");
    }
}

#[test]
fn relations_are_qualified_when_another_of_their_name_comes_first() {
    let expected = [
        (0, "-"),
        (9, "9"),
        (1259, "pg_class"),
        (30, "t"),
        (31, "public.t"),
        (32, "other.t"),
        (33, "public.pg_class"),
        (34, "\"Tab le\""),
        (35, "\"select\".\"from\""),
        (36, "\"x\"\"y\""),
        (37, "json_table"),
        (38, "orphan"),
    ];
    check(NameCatalog::write_regclass, &expected);
}

#[test]
fn types_print_as_sql_spells_them() {
    let expected = [
        (0, "-"),
        (9, "9"),
        (18, "\"char\""),
        (19, "name"),
        (23, "integer"),
        (25, "text"),
        (30, "oidvector"),
        (1009, "text[]"),
        (1015, "character varying[]"),
        (1560, "bit"),
        (60, "\"integer\""),
        (61, "public.text"),
        (62, "public.\"char\""),
        (64, "other.mood[]"),
        (66, "public.\"bit\"[]"),
        (67, "\"select\".\"Typ e\""),
        (69, "???[]"),
    ];
    check(NameCatalog::write_regtype, &expected);
    check(NameCatalog::write_format_type, &[(0, "-"), (9, "???"), (1009, "text[]")]);
}

#[test]
fn a_function_prints_bare_only_when_its_name_alone_finds_it() {
    let expected = [
        (0, "-"),
        (9, "9"),
        (100, "now"),
        (101, "public.now"),
        (102, "public.f"),
        (103, "public.f"),
        (104, "g"),
        (105, "public.g"),
        (106, "other.g"),
        (107, "h"),
        (108, "other.h"),
        (109, "postgres.multi"),
        (110, "public.multi"),
        (111, "public.multi"),
        (112, "\"select\""),
    ];
    check(NameCatalog::write_regproc, &expected);
}

#[test]
fn a_procedure_prints_bare_when_its_name_and_arguments_find_it() {
    let expected = [
        (0, "-"),
        (100, "now()"),
        (101, "public.now()"),
        (102, "f(integer)"),
        (103, "f(text)"),
        (105, "public.g(integer)"),
        (109, "multi(integer)"),
        (110, "public.multi(integer)"),
        (111, "multi(integer,integer)"),
        (
            112,
            "\"select\"(\"select\".\"Typ e\",public.\"char\",\"char\",other.mood,other.mood[],dom,\
             public.\"bit\"[],bit,public.text,text,character varying[],oidvector)",
        ),
        (113, "other.lost(???,-)"),
    ];
    check(NameCatalog::write_regprocedure, &expected);
}

#[test]
fn operators_follow_the_rules_of_functions_and_are_never_quoted() {
    let by_name = [
        (0, "0"),
        (9, "9"),
        (200, "+"),
        (201, "public.+"),
        (202, "<#@>"),
        (203, "public.<#@>"),
        (204, "other.<#@>"),
        (205, "public.@#@"),
        (206, "public.@#@"),
        (207, "\"select\".***"),
        (208, "!!!"),
    ];
    check(NameCatalog::write_regoper, &by_name);
    let with_args = [
        (0, "0"),
        (9, "9"),
        (201, "public.+(integer,integer)"),
        (204, "other.<#@>(integer,bigint)"),
        (205, "@#@(NONE,integer)"),
        (206, "@#@(integer,integer)"),
    ];
    check(NameCatalog::write_regoperator, &with_args);
}

#[test]
fn a_collation_for_the_encoding_goes_before_one_for_all() {
    let expected = [
        (300, "\"C\""),
        (301, "public.\"C\""),
        (302, "spec"),
        (303, "public.spec"),
        (304, "pg_catalog.spec"),
        (305, "\"de-x-icu\""),
    ];
    check(NameCatalog::write_regcollation, &expected);
    let settings = NameSettings::new(PgVersion::V15, LATIN10);
    let names = NameCatalog::new(Nasty::default(), settings);
    let print = |oid| printed(&names, NameCatalog::write_regcollation, oid);
    assert_eq!(print(305), "pg_catalog.\"de-x-icu\"", "ICU does not know LATIN10");
    assert_eq!(print(303), "spec");
}

#[test]
fn schemas_roles_and_text_search_objects_print_by_the_same_rules() {
    check(NameCatalog::write_regnamespace, &[(0, "-"), (9, "9"), (SELECT, "\"select\"")]);
    let roles = [(0, "-"), (9, "9"), (10, "postgres"), (20, "\"My Role\""), (21, "\"table\"")];
    check(NameCatalog::write_regrole, &roles);
    let configs =
        [(401, "public.english"), (402, "mycfg"), (403, "other.mycfg"), (404, "\"Order\"")];
    check(NameCatalog::write_regconfig, &configs);
    check(NameCatalog::write_regdictionary, &[(500, "simple"), (501, "d2"), (502, "public.d2")]);
    let names = nasty(PgVersion::V15);
    assert_eq!(names.role_name(Oid(20)), Ok(Some(&b"My Role"[..])));
    assert_eq!(names.role_name(Oid(9)), Ok(None));
}

#[test]
fn key_words_count_from_the_version_that_has_them() {
    let of_role = |version| printed(&nasty(version), NameCatalog::write_regrole, 22);
    assert_eq!(of_role(PgVersion::V16), "json_value");
    assert_eq!(of_role(PgVersion::V17), "\"json_value\"");
    // `json` became a key word too, but the type of this name keeps its bare spelling.
    let of_json = |version| printed(&nasty(version), NameCatalog::write_regtype, 114);
    assert_eq!((of_json(PgVersion::V16), of_json(PgVersion::V18)), ("json".into(), "json".into()));
}

#[test]
fn the_search_path_decides_who_is_found() {
    let mut settings = NameSettings::new(PgVersion::V15, UTF8);
    settings.search_path = vec![bytes("public"), bytes("pg_catalog"), bytes("nowhere")];
    let names = NameCatalog::new(Nasty::default(), settings);
    assert_eq!(printed(&names, NameCatalog::write_regclass, 33), "pg_class");
    assert_eq!(printed(&names, NameCatalog::write_regclass, 1259), "pg_catalog.pg_class");
    assert_eq!(printed(&names, NameCatalog::write_regclass, 30), "postgres.t");
    assert_eq!(printed(&names, NameCatalog::write_regtype, 25), "pg_catalog.text");
    assert_eq!(printed(&names, NameCatalog::write_regtype, 23), "integer");
}

#[test]
fn a_catalog_is_read_once_and_only_when_a_value_needs_it() {
    let rows = Nasty::default();
    let names = NameCatalog::new(&rows, NameSettings::new(PgVersion::V18, UTF8));
    assert_eq!(rows.reads.load(Ordering::Relaxed), 0);
    let mut out = Vec::new();
    for _ in 0..3 {
        let Ok(()) = names.write_regclass(Oid(30), &mut out);
    }
    assert_eq!(out, b"ttt");
    assert_eq!(rows.reads.load(Ordering::Relaxed), 2, "pg_namespace and pg_class");
}

#[test]
fn several_threads_may_print_at_once() {
    let names = nasty(PgVersion::V18);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(printed(&names, NameCatalog::write_regproc, 104), "g");
                }
            });
        }
    });
}

proptest! {
    #[test]
    fn any_oid_prints_as_something(oid: u32) {
        let names = nasty(PgVersion::V18);
        let writes: [Write; 4] = [
            NameCatalog::write_regtype,
            NameCatalog::write_regproc,
            NameCatalog::write_regrole,
            NameCatalog::write_regoperator,
        ];
        for write in writes {
            prop_assert!(!printed(&names, write, oid).is_empty());
        }
    }
}
