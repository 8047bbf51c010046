//! `pg_get_keywords`: the key words of SQL, and where each may stand as a name.
//!
//! Invariant: the words are those of PostgreSQL 15; any other version has others, and is refused.
//!
//! Source: `pg_get_keywords` in `src/backend/utils/adt/misc.c`, `src/include/parser/kwlist.h`, PostgreSQL 15, as a server of that version
//! lists them.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;

use super::super::rows::Outcome;
use super::super::system::statement_error;
use super::super::text_form;
use super::{Cells, Series, SetCall, made};
use crate::error::StatementError;

const MAJOR: u32 = 15;

/// Names of all kinds.
const UNRESERVED: &str = "\
    abort absolute access action add admin after aggregate also alter always asensitive assertion assignment \
    at atomic attach attribute backward before begin breadth by cache call called cascade cascaded catalog \
    chain characteristics checkpoint class close cluster columns comment comments commit committed \
    compression configuration conflict connection constraints content continue conversion copy cost csv cube \
    current cursor cycle data database day deallocate declare defaults deferred definer delete delimiter \
    delimiters depends depth detach dictionary disable discard document domain double drop each enable \
    encoding encrypted enum escape event exclude excluding exclusive execute explain expression extension \
    external family filter finalize first following force forward function functions generated global granted \
    groups handler header hold hour identity if immediate immutable implicit import include including \
    increment index indexes inherit inherits inline input insensitive insert instead invoker isolation key \
    label language large last leakproof level listen load local location lock locked logged mapping match \
    matched materialized maxvalue merge method minute minvalue mode month move name names new next nfc nfd \
    nfkc nfkd no normalized nothing notify nowait nulls object of off oids old operator option options \
    ordinality others over overriding owned owner parallel parameter parser partial partition passing \
    password plans policy preceding prepare prepared preserve prior privileges procedural procedure \
    procedures program publication quote range read reassign recheck recursive ref referencing refresh \
    reindex relative release rename repeatable replace replica reset restart restrict return returns revoke \
    role rollback rollup routine routines rows rule savepoint schema schemas scroll search second security \
    sequence sequences serializable server session set sets share show simple skip snapshot sql stable \
    standalone start statement statistics stdin stdout storage stored strict strip subscription support sysid \
    system tables tablespace temp template temporary text ties transaction transform trigger truncate trusted \
    type types uescape unbounded uncommitted unencrypted unknown unlisten unlogged until update vacuum valid \
    validate validator value varying version view views volatile whitespace within without work wrapper write \
    xml year yes zone";

/// Names but of functions and types.
const COLUMN_NAMES: &str = "\
    between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping \
    inout int integer interval least national nchar none normalize nullif numeric out overlay position \
    precision real row setof smallint substring time timestamp treat trim values varchar xmlattributes \
    xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// Names of functions and types alone.
const FUNCTION_NAMES: &str = "\
    authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join \
    left like natural notnull outer overlaps right similar tablesample verbose";

/// No names.
const RESERVED: &str = "\
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create \
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable \
    desc distinct do else end except false fetch for foreign from grant group having in initially intersect \
    into lateral leading limit localtime localtimestamp not null offset on only or order placing primary \
    references returning select session_user some symmetric table then to trailing true union unique user \
    using variadic when where window with";

/// Of these, labels only behind AS.
const WITH_AS: &str = "\
    array as char character create day except fetch filter for from grant group having hour intersect into \
    isnull limit minute month notnull offset on order over overlaps precision returning second to union \
    varying where window with within without year";

/// What the categories are called.
const CATEGORIES: [(&str, &str, &str); 4] = [
    (UNRESERVED, "U", "unreserved"),
    (COLUMN_NAMES, "C", "unreserved (cannot be function or type name)"),
    (FUNCTION_NAMES, "T", "reserved (can be function or type name)"),
    (RESERVED, "R", "reserved"),
];

/// A key word.
struct KeyWord {
    word: &'static str,
    code: ScalarValue,
    about: &'static str,
    is_bare_label: bool,
}

pub(super) fn begin(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let major = call.catalog.database().cluster().version().major();
    if major != MAJOR {
        return Err(StatementError::unsupported(format!("pg_get_keywords of PostgreSQL {major}")));
    }
    let column = &call.columns[1];
    let mut words = Vec::new();
    for (list, letter, about) in CATEGORIES {
        let code = text_form::read(&call.catalog, column.ty, &column.carrier, letter);
        let code = code.map_err(statement_error)?;
        words.extend(list.split(' ').map(|word| {
            let is_bare_label = !WITH_AS.split(' ').any(|other| other == word);
            KeyWord { word, code: code.clone(), about, is_bare_label }
        }));
    }
    words.sort_by_key(|key| key.word);
    Ok(made(words, put))
}

fn put(key: KeyWord, out: &mut [Cells]) -> Outcome<()> {
    out[0].text(key.word)?;
    out[1].scalar(key.code)?;
    out[2].scalar(ScalarValue::Boolean(Some(key.is_bare_label)))?;
    out[3].text(key.about)?;
    out[4].text(if key.is_bare_label { "can be bare label" } else { "requires AS" })
}
