//! The types and texts that are tried: for every rule of a grammar texts that keep it and texts that
//! break it. What becomes of each is for the server to say. A family of types has a file of its own.

mod documents;
mod geometry;
mod markup;
mod moments;
mod names;
mod paths;
mod searches;
mod trees;

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
    pub(crate) texts: Vec<String>,
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
    Case {
        type_name,
        since: PgVersion::V14,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
    }
}

/// Everything that is tried.
pub(crate) fn all() -> Vec<Case> {
    let families = [
        trees::all(),
        documents::all(),
        geometry::all(),
        searches::all(),
        names::all(),
        paths::all(),
        moments::all(),
        markup::all(),
    ];
    families.into_iter().flatten().collect()
}
