//! Stored trees with something changed in them: a text may come out, or an error, and never anything worse.
//!
//! The trees are a server's: of the views that initdb makes and of the objects that definitions are compared for.

#[path = "../../tests/definitions/made.rs"]
mod made;

use std::sync::Arc;

use made::MADE;
use pagemill_cluster::{Cluster, OpenOptions};
use pagemill_format::Oid;
use pagemill_format::node_tree::Node;
use pagemill_io::Storage;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

use super::writer::FunctionNames;
use super::{Style, Unwritten, Writer};
use crate::catalog::Catalog;
use crate::system_rows::for_each_row;

/// What stands in place of a word of a tree.
const WORDS: [&str; 12] = [
    "-1",
    "0",
    "1",
    "2",
    "3",
    "7",
    "65535",
    "4294967295",
    "<>",
    "true",
    "x",
    "18446744073709551615",
];

/// Numbers that look random, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or(0)
    }
}

/// Trees, each with the relation that it is of, queries apart.
fn trees(catalog: &Catalog) -> crate::Result<Vec<(Oid, String)>> {
    let mut found = Vec::new();
    for (table, relation, tree) in [
        ("pg_rewrite", "ev_class", "ev_action"),
        ("pg_rewrite", "ev_class", "ev_qual"),
        ("pg_proc", "prorettype", "prosqlbody"),
        ("pg_attrdef", "adrelid", "adbin"),
        ("pg_constraint", "conrelid", "conbin"),
        ("pg_index", "indrelid", "indexprs"),
        ("pg_trigger", "tgrelid", "tgqual"),
        ("pg_class", "oid", "relpartbound"),
        ("pg_policy", "polrelid", "polqual"),
    ] {
        for_each_row(catalog.values(), table, &[relation, tree], |row| {
            found.extend(row.text(1)?.map(|tree| (row.oid(0), tree)));
            Ok(())
        })?;
    }
    Ok(found)
}

fn written(catalog: &Arc<Catalog>, relation: Oid, tree: &str) -> Result<String, Unwritten> {
    let dictionary = catalog.dictionary().expect("the catalogs are whole");
    let parsed = Node::parse(tree.as_bytes())?;
    let mut writer = Writer::new(catalog, &dictionary, Style::new(tree.len().is_multiple_of(2)));
    match &parsed {
        Node::List(members) => match members.first() {
            Some(Node::Struct(query)) if query.name == b"QUERY" => {
                writer.view(query, Some(&dictionary.column_names(relation)))
            }
            Some(Node::List(_)) => {
                let names = FunctionNames { name: "f".to_owned(), arguments: vec!["n".to_owned()] };
                writer.body(&parsed, names)
            }
            _ => writer.tree(&parsed, relation),
        },
        _ => writer.tree(&parsed, relation),
    }
}

#[test]
fn changed_trees_do_no_harm() {
    assert!(PgInstall::find(15).is_some(), "PostgreSQL 15 is installed");
    for install in [15, 18].into_iter().filter_map(PgInstall::find) {
        changed_trees_of(&install);
    }
}

fn changed_trees_of(install: &PgInstall) {
    let mut server = TestCluster::create(install, &ClusterOptions::default()).unwrap();
    for (_, objects) in MADE.iter().filter(|(major, _)| *major <= install.major) {
        server.psql("postgres", objects).unwrap();
    }
    server.stop().unwrap();
    let cluster = Cluster::open(Storage::real(), &server.data_dir(), OpenOptions::default());
    let database = cluster.unwrap().database("postgres").unwrap();
    let catalog = Arc::new(Catalog::read(&database).unwrap());
    let trees = trees(&catalog).unwrap();
    assert!(trees.len() > 200, "there are trees of every kind");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut texts, mut errors) = (0, 0);
    for (relation, tree) in &trees {
        let words: Vec<&str> = tree.split(' ').collect();
        for _ in 0..30 {
            let mut changed = words.clone();
            for _ in 0..=numbers.below(3) {
                changed[numbers.below(words.len())] = match numbers.below(3) {
                    0 => words[numbers.below(words.len())],
                    _ => WORDS[numbers.below(WORDS.len())],
                };
            }
            match written(&catalog, *relation, &changed.join(" ")) {
                Ok(_) => texts += 1,
                Err(_) => errors += 1,
            }
        }
    }
    assert!(texts > 100 && errors > 100, "{texts} texts, {errors} errors");
}
