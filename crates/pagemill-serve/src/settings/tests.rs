//! Settings that are set, shown and rolled back.
//!
//! No server is asked: what it does is in the tests of the built program.

use super::*;

#[test]
fn times_have_their_largest_unit() {
    for (time, shown) in
        [(0, "0"), (1, "1ms"), (1000, "1s"), (90_000, "90s"), (7_200_000, "2h"), (86_400_000, "1d")]
    {
        assert_eq!(shown_time(time), shown);
    }
}

fn settings() -> Settings {
    let search_path = "public";
    let origin = Origin {
        version: "15",
        major: 15,
        user: "ada",
        is_superuser: true,
        search_path,
        time_zone: "UTC",
    };
    Settings::new(origin)
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Result<()> {
    let (name, value) = (name.to_owned(), Some(value.to_owned()));
    settings.set(&SetSetting { name, value, is_local: false })
}

#[test]
fn what_changes_answers_keeps_its_value() {
    let mut settings = settings();
    let mut set = |name, value| set(&mut settings, name, value);
    assert!(set("array_nulls", "true").is_ok());
    assert!(set("array_nulls", "off").is_err());
    assert!(set("timezone", "UTC").is_ok());
    assert!(set("TimeZone", "Europe/Paris").is_ok());
    assert!(set("nonsense", "0").is_err());
    assert!(set("search_path", "a b").is_err());
    assert!(set("my.own", "x").is_ok());
    assert!(set("application_name", "psql").is_ok());
    assert_eq!(settings.show("my.own").unwrap().1, "x");
    assert_eq!(settings.show("timezone").unwrap().0, "TimeZone");
}

#[test]
fn styles_are_kept_as_the_server_shows_them() {
    let mut settings = settings();
    let plain = settings.styles();
    let mut told = |name: &str, value: &str| match set(&mut settings, name, value) {
        Ok(()) => settings.show(name).unwrap().1.clone(),
        Err(error) => error.message,
    };
    assert_eq!(told("datestyle", "dmy"), "ISO, DMY");
    assert_eq!(told("DateStyle", "sql"), "SQL, DMY");
    assert_eq!(told("DateStyle", "default, german"), "German, DMY");
    let message = "invalid value for parameter \"DateStyle\": \"iso, sql\"";
    assert_eq!(told("datestyle", "iso, sql"), message);
    assert_eq!(told("intervalstyle", "ISO_8601"), "iso_8601");
    let message = "invalid value for parameter \"intervalstyle\": \"iso\"";
    assert_eq!(told("intervalstyle", "iso"), message);
    assert_eq!(told("bytea_output", "Escape"), "escape");
    assert_eq!(told("extra_float_digits", "2"), "2");
    let message = "4 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)";
    assert_eq!(told("extra_float_digits", "4"), message);
    assert_eq!(told("extra_float_digits", "-0x2"), "-2");
    assert_eq!(settings.styles().extra_float_digits, -2);
    settings.reset_all();
    set(&mut settings, "extra_float_digits", "3").unwrap();
    assert_eq!(settings.styles(), plain);
}

#[test]
fn another_user_has_no_role() {
    let mut settings = settings();
    set(&mut settings, "role", "reader").unwrap();
    set(&mut settings, "session_authorization", "bob").unwrap();
    assert_eq!((settings.session_user(), settings.role()), ("bob", None));
    set(&mut settings, "role", "reader").unwrap();
    settings.reset_all();
    assert_eq!((settings.session_user(), settings.role()), ("bob", Some("reader")));
    let name = "session_authorization".to_owned();
    settings.set(&SetSetting { name, value: None, is_local: false }).unwrap();
    assert_eq!((settings.session_user(), settings.role()), ("ada", None));
}

#[test]
fn settings_go_with_their_transaction() {
    let mut settings = settings();
    let local = |value: &str| {
        let (name, value) = ("search_path".to_owned(), Some(value.to_owned()));
        SetSetting { name, value, is_local: true }
    };
    settings.set(&local("nowhere")).unwrap();
    assert_eq!(settings.search_path(), "public");
    settings.begin(None).unwrap();
    set(&mut settings, "search_path", "a").unwrap();
    settings.set(&local("b")).unwrap();
    assert_eq!(settings.search_path(), "b");
    settings.end(true);
    assert_eq!(settings.search_path(), "a");
    settings.begin(None).unwrap();
    set(&mut settings, "search_path", "c").unwrap();
    settings.end(false);
    assert_eq!(settings.search_path(), "a");
}

#[test]
fn a_transaction_has_a_level_of_its_own_or_the_default() {
    let mut settings = settings();
    set(&mut settings, DEFAULT_ISOLATION, "Serializable").unwrap();
    assert_eq!(settings.isolation(), "serializable");
    settings.begin(Some("repeatable read")).unwrap();
    settings.reset_all();
    assert_eq!(settings.isolation(), "repeatable read");
    set(&mut settings, ISOLATION, "read uncommitted").unwrap();
    assert_eq!(settings.isolation(), "read uncommitted");
    settings.end(true);
    assert_eq!(settings.isolation(), "read committed");
    assert!(settings.begin(Some("chaos")).is_err() && set(&mut settings, ISOLATION, "").is_err());
}

#[test]
fn what_an_application_set_once_stays_there() {
    let mut settings = settings();
    let own = |value: Option<&str>, is_local| {
        let (name, value) = ("My.own".to_owned(), value.map(str::to_owned));
        SetSetting { name, value, is_local }
    };
    let value = |settings: &Settings| settings.asked_for().get("my.own").cloned();
    assert_eq!(value(&settings), None);
    settings.begin(None).unwrap();
    settings.set(&own(Some("a"), true)).unwrap();
    assert_eq!(value(&settings).as_deref(), Some("a"));
    settings.save("s");
    settings.set(&own(Some("b"), false)).unwrap();
    settings.save("t");
    settings.set(&own(Some("c"), false)).unwrap();
    settings.roll_back_to("s").unwrap();
    assert_eq!(value(&settings).as_deref(), Some("a"));
    assert!(settings.roll_back_to("t").is_err() && settings.release("s").is_ok());
    assert!(settings.release("s").is_err());
    settings.end(true);
    assert_eq!(value(&settings).as_deref(), Some(""));
    settings.set(&own(Some("d"), false)).unwrap();
    settings.set(&own(None, false)).unwrap();
    assert_eq!(value(&settings).as_deref(), Some(""));
}

#[test]
fn times_have_units() {
    let mut settings = settings();
    assert_eq!(settings.statement_timeout(), None);
    for (text, time) in [("250", 250), ("2s", 2000), ("1.5min", 90_000), ("0", 0)] {
        set(&mut settings, "statement_timeout", text).unwrap();
        let found = settings.statement_timeout().unwrap_or_default();
        assert_eq!(found, Duration::from_millis(time), "{text}");
    }
    for wrong in ["-1", "soon", "5 years", ""] {
        assert!(set(&mut settings, "statement_timeout", wrong).is_err(), "{wrong}");
    }
}
