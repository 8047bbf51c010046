//! Which commands texts are, and what is refused of them.
//!
//! Invariant: nothing here asks a session.

use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::*;

fn commands(text: &str) -> Result<Vec<Command>> {
    let sent = super::commands(text, &StatementTexts::default())?;
    Ok(sent.into_iter().map(|sent| sent.command).collect())
}

fn one(text: &str) -> Command {
    let mut commands = commands(text).unwrap();
    assert_eq!(commands.len(), 1, "{text}");
    commands.remove(0)
}

#[test]
fn a_text_is_cut_where_statements_end() {
    let all = commands("select ';' ; /* ; */ begin; -- ;\n select 1;;").unwrap();
    assert!(
        matches!(
            &all[..],
            [Command::Query(_), Command::Begin { tag: "BEGIN", .. }, Command::Query(_)]
        ),
        "{all:?}"
    );
    assert!(commands(" ; -- nothing").unwrap().is_empty());
    assert!(commands("select 1; selec 2").is_err());
    assert!(commands("select 'open").is_err());
}

#[test]
fn places_are_told_in_characters_of_the_whole_text() {
    let texts = StatementTexts::default();
    let told = |text: &str| super::commands(text, &texts).unwrap_err().character;
    assert_eq!(told("select 'ä' from t where )"), Some(25));
    assert_eq!(told("select 'ä';\n select\n  1 from t where )"), Some(38));
    assert_eq!(told("declare c cursor for select 1 from t where )"), None);
    let sent = super::commands("select 1;\nselect ä, x", &texts).unwrap();
    let error = StatementError::new(SqlState::UNDEFINED_COLUMN, "it is missing");
    let place = sent[1].place("select 1;\nselect ä, x");
    assert_eq!(place(error.clone().at(2, 11)).character, Some(21));
    assert_eq!(place(error).character, None);
}

#[test]
fn settings_have_names_and_values() {
    let set = |text: &str| match one(text) {
        Command::Set(SetSetting { name, value, .. }) => (name, value),
        other => panic!("{other:?}"),
    };
    let of = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    assert_eq!(set("set datestyle to ISO, 'MDY'"), of("datestyle", "iso, MDY"));
    assert_eq!(set("SET SESSION Statement_Timeout = 5"), of("statement_timeout", "5"));
    assert_eq!(set("set local my.own to -1"), of("my.own", "-1"));
    assert_eq!(set("set time zone 'UTC'"), of("timezone", "UTC"));
    assert_eq!(set("set search_path = default"), ("search_path".to_owned(), None));
    let path = |text: &str| set(text).1.unwrap_or_default();
    assert_eq!(path("set search_path to A, \"B c\", '$user', ''"), "a, \"B c\", \"$user\", \"\"");
    assert!(matches!(one("set local search_path = x"), Command::Set(set) if set.is_local));
    let given = one("SELECT pg_catalog.set_config('search_path', '', false);");
    let Command::SetConfig(given) = given else { panic!("{given:?}") };
    assert!(!given.if_known);
    let given = given.setting(&[]).unwrap();
    assert_eq!((&*given.name, given.value.as_deref()), ("search_path", Some("")));
    let sought = one("SELECT set_config(name, 'v', true) FROM pg_settings WHERE name = 'n'");
    let Command::SetConfig(sought) = sought else { panic!("{sought:?}") };
    assert!(sought.if_known);
    let sought = sought.setting(&[]).unwrap();
    assert_eq!((&*sought.name, sought.is_local), ("n", true));
    assert!(matches!(one("select set_config('x', 'y', false), 1"), Command::Query(_)));
    assert!(matches!(one("select current_setting('x')"), Command::Query(_)));
    let Command::SetConfig(asked) = one("select set_config($2, $1::text, $3) as s") else {
        panic!()
    };
    assert_eq!(asked.types(&[]).unwrap(), [oid::TEXT, oid::TEXT, oid::BOOL]);
    assert_eq!(asked.column, "s");
    assert!(asked.setting(&[]).is_err());
    assert!(asked.types(&[Oid(0), oid::VARCHAR]).is_ok());
    assert!(asked.types(&[Oid(0), Oid(0), oid::TEXT]).is_err());
    let Command::SetConfig(unclear) = one("select set_config('x', 'y', 'maybe')") else { panic!() };
    assert_eq!(unclear.setting(&[]).unwrap_err().state, SqlState("22P02"));
    let gap = one("select set_config('x', $2, true)");
    assert!(matches!(gap, Command::SetConfig(gap) if gap.types(&[]).is_err()));
    assert!(matches!(one("show transaction isolation level"),
        Command::Show(name) if name == "transaction_isolation"));
    assert!(matches!(one("show all"), Command::ShowAll));
    assert!(commands("set x").is_err() && commands("set session authorization").is_err());
    let user = |name: &str| of("session_authorization", name);
    assert_eq!(set("set session authorization Bob"), user("bob"));
    assert_eq!(set("set local session authorization 'Bob B'"), user("Bob B"));
    assert_eq!(set("set session session authorization \"Bob\""), user("Bob"));
    assert_eq!(set("set session authorization default").1, None);
    assert_eq!(set("reset session authorization"), ("session_authorization".to_owned(), None));
    let role = |text| match one(text) {
        Command::Set(SetSetting { name, value, .. }) if name == "role" => value,
        other => panic!("{other:?}"),
    };
    assert_eq!(role("set role Ada").as_deref(), Some("ada"));
    assert_eq!(role("set local role \"Ada\"").as_deref(), Some("Ada"));
    assert_eq!((role("set role to Ada").as_deref(), role("set role default")), (Some("ada"), None));
    assert_eq!(role("set role to 'ada b'").as_deref(), Some("ada b"));
    assert_eq!((role("set role none").as_deref(), role("reset role")), (Some("none"), None));
}

#[test]
fn cursors_are_declared_and_moved_in_words() {
    use Direction::{Absolute, Backward, Forward, Relative};
    let fetch = |text: &str| match one(text) {
        Command::Fetch(Fetch { name, direction, is_move }) => (name, direction, is_move),
        other => panic!("{other:?}"),
    };
    let of_c = |direction| ("c".to_owned(), direction, false);
    assert_eq!(fetch("fetch c"), of_c(Forward(Some(1))));
    assert_eq!(fetch("FETCH FORWARD 10 FROM \"C\""), ("C".to_owned(), Forward(Some(10)), false));
    assert_eq!(fetch("fetch next in c"), of_c(Forward(Some(1))));
    assert_eq!(fetch("move all from c"), ("c".to_owned(), Forward(None), true));
    assert_eq!(fetch("fetch -3 c"), of_c(Backward(Some(3))));
    assert_eq!(fetch("fetch +3 c"), of_c(Forward(Some(3))));
    assert_eq!(fetch("fetch 0 from c"), of_c(Forward(Some(0))));
    assert_eq!(fetch("fetch backward c"), of_c(Backward(Some(1))));
    assert_eq!(fetch("fetch backward -2 from c"), of_c(Forward(Some(2))));
    assert_eq!(fetch("fetch backward all in c"), of_c(Backward(None)));
    assert_eq!(fetch("fetch prior from c"), of_c(Backward(Some(1))));
    assert_eq!(fetch("fetch first c"), of_c(Absolute(1)));
    assert_eq!(fetch("fetch last from c"), of_c(Absolute(-1)));
    assert_eq!(fetch("fetch absolute -2 from c"), of_c(Absolute(-2)));
    assert_eq!(fetch("fetch relative 0 from c"), of_c(Relative(0)));
    assert_eq!(fetch("fetch prior").0, "prior");
    let declared = |text: &str| match one(text) {
        Command::Declare { name, query, options } => (name, query.to_string(), options),
        other => panic!("{other:?}"),
    };
    let (name, query, options) =
        declared("declare \"x y\" no scroll cursor without hold for\nselect 'ä; for' from t");
    assert_eq!((&*name, &*query), ("x y", "SELECT 'ä; for' FROM t"));
    assert_eq!((options.scroll, options.is_held), (Scroll::Forward, false));
    let (.., options) =
        declared("declare c binary insensitive scroll cursor with hold for select 1");
    let all = CursorOptions { scroll: Scroll::Any, is_held: true, is_binary: true };
    assert_eq!(options, all);
    for wrong in [
        "fetch",
        "fetch 1 2 c",
        "fetch absolute from c",
        "fetch - c",
        "fetch 99999999999 from c",
        "declare c scroll no scroll cursor for select 1",
        "declare c cursor with for select 1",
    ] {
        assert!(commands(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn statements_are_prepared_in_words() {
    let prepared = one("prepare p(pg_catalog.oid, numeric(5,2)) as select $1, $2");
    let Command::Prepare { name, types, query } = prepared else { panic!("{prepared:?}") };
    assert_eq!((&*name, query.to_string()), ("p", "SELECT $1, $2".to_owned()));
    assert_eq!(types, ["pg_catalog.oid", "numeric(5,2)"]);
    let executed = one("execute p('1', -2, null, true)");
    let Command::Execute { name, values } = executed else { panic!("{executed:?}") };
    let wanted = [Some("1"), Some("-2"), None, Some("TRUE")];
    assert_eq!((&*name, values), ("p", wanted.map(|text| text.map(str::to_owned)).to_vec()));
    for wrong in ["prepare p", "prepare p(int as select 1", "execute p(1", "execute p(1 + 1)"] {
        assert!(commands(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn places_in_a_transaction_have_names() {
    for (text, name) in [
        ("rollback to x", "x"),
        ("ROLLBACK TRANSACTION TO SAVEPOINT \"A b\"", "A b"),
        ("rollback work to Savepoint", "savepoint"),
    ] {
        assert!(matches!(one(text), Command::RollbackTo(found) if found == name), "{text}");
    }
    assert!(matches!(one("savepoint S"), Command::Savepoint(name) if name == "s"));
    assert!(matches!(one("release savepoint s"), Command::Release(name) if name == "s"));
    assert!(matches!(one("release s"), Command::Release(name) if name == "s"));
    assert!(commands("savepoint").is_err() && commands("rollback to a b").is_err());
}

#[test]
fn locks_that_keep_readers_away_are_refused() {
    assert!(matches!(one("lock table only t in access share mode"), Command::Nothing(_)));
    assert!(matches!(one("lock t in access share mode nowait"), Command::Nothing(_)));
    assert!(commands("lock table t").is_err());
}
