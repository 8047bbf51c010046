//! Clients over TCP: who has a password of the cluster's comes in, within TLS where there is a certificate, and all others learn nothing.
//!
//! psql 15 and tokio-postgres are the clients of those that keep to the protocol; those that do not are bytes.

#[path = "network/served.rs"]
mod served;
#[path = "network/wire.rs"]
mod wire;

use std::io::{Read as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use served::{Authority, Served, client, cluster, failed, printed};
use wire::Wire;

/// All that is told of a connection that is refused for its password.
fn refused(user: &str) -> String {
    format!("FATAL:  password authentication failed for user \"{user}\"")
}

#[test]
fn passwords_of_the_cluster_let_in() -> Result<()> {
    let cluster = cluster()?;
    let served = Served::start(&cluster, &["--listen", "127.0.0.1,::1", "-v"])?;
    let who = "select current_user, count(*) from t";
    for user in ["ada", "lasting", "reader"] {
        let found = printed(client(&served, &format!("user={user}"), "right"), who)?;
        assert_eq!(found, format!("{user}|20000\n"));
    }
    // One answer for all, whatever keeps them away, and whatever database they ask for.
    let users = ["ada", "nobody", "expired", "barred", "bare", "aged", "reader"];
    for user in users {
        let password = if user == "ada" || user == "reader" { "wrong" } else { "right" };
        for database in ["postgres", "closed", "nope"] {
            let place = format!("user={user} dbname={database}");
            let found = failed(client(&served, &place, password), "select 1")?;
            ensure!(found.contains(&refused(user)), "{place}: {found}");
        }
    }
    // Once it is known who it is, words are plain.
    let plain = [
        ("user=ada dbname=nope", "database \"nope\" does not exist"),
        ("user=ada dbname=closed", "database \"closed\" is not currently accepting connections"),
        ("user=ada sslmode=require", "server does not support SSL"),
        ("user=ada channel_binding=require", "channel binding"),
    ];
    for (place, words) in plain {
        let found = failed(client(&served, place, "right"), "select 1")?;
        ensure!(found.contains(words), "{place}: {found}");
    }
    // Who is denied is told to who started the server, and why.
    let log = served.log()?;
    for why in [
        "role \"nobody\" is refused: there is no such role",
        "role \"expired\" is refused: the role's password is no longer valid",
        "role \"barred\" is refused: the role may not log in",
        "role \"bare\" is refused: the role has no password",
        "role \"aged\" is refused: the role's password is not kept for SCRAM-SHA-256",
        "role \"ada\" is refused: a wrong password",
    ] {
        ensure!(log.contains(why), "{why}\n{log}");
    }
    Ok(())
}

#[test]
fn with_a_certificate_clients_speak_tls() -> Result<()> {
    let cluster = cluster()?;
    let authority = Authority::new()?;
    let served = Served::start(&cluster, &authority.flags(&["--listen", "localhost"]))?;
    let root = authority.path("root.crt");
    let verified = format!("user=ada host=localhost sslmode=verify-full sslrootcert={root}");
    for place in [
        "user=ada sslmode=require",
        "user=ada sslmode=prefer",
        "user=ada sslmode=require channel_binding=require",
        "user=ada sslmode=require channel_binding=disable",
        &verified,
    ] {
        let found = printed(client(&served, place, "right"), "select sum(i) from t")?;
        assert_eq!(found, "200010000\n", "{place}");
        ensure!(failed(client(&served, place, "wrong"), "select 1")?.contains(&refused("ada")));
    }
    // Twenty megabytes, at the client's pace.
    let all = printed(client(&served, "user=ada sslmode=require", "right"), "select * from t")?;
    ensure!(all.lines().count() == 20_000 && all.lines().all(|line| line.len() > 1000));
    let found = printed(client(&served, "user=ada sslmode=require", "right"), "\\conninfo")?;
    ensure!(found.contains("TLSv1.3"), "{found}");
    let older = "user=ada sslmode=require ssl_max_protocol_version=TLSv1.2 channel_binding=require";
    let own = "select ssl, version, cipher, bits, host(client_addr) = host(inet_client_addr()), client_port > 0
         from pg_stat_ssl join pg_stat_activity using (pid) where pid = pg_backend_pid()";
    let found = printed(client(&served, older, "right"), own)?;
    let (_, cipher) = found.split_once("|TLSv1.2|").context("the version of TLS")?;
    ensure!(found.starts_with('t') && cipher.starts_with("ECDHE-"), "{found}");
    ensure!(cipher.ends_with("|256|t|t\n") || cipher.ends_with("|128|t|t\n"), "{found}");

    let stranger = Authority::new()?;
    let mistrusted = [
        (
            format!(
                "user=ada host=localhost sslmode=verify-full sslrootcert={}",
                stranger.path("root.crt")
            ),
            "SSL error",
        ),
        (format!("user=ada sslmode=verify-full sslrootcert={root}"), "does not match host name"),
        ("user=ada sslmode=disable".into(), "connections over TCP without TLS are refused"),
        ("user=nobody sslmode=disable".into(), "connections over TCP without TLS are refused"),
    ];
    for (place, words) in mistrusted {
        let found = failed(client(&served, &place, "right"), "select 1")?;
        ensure!(found.contains(words), "{place}: {found}");
    }
    Ok(())
}

#[test]
fn plaintext_is_taken_where_it_is_allowed() -> Result<()> {
    let cluster = cluster()?;
    let authority = Authority::new()?;
    let flags = authority.flags(&["--listen", "127.0.0.1", "--allow-plaintext"]);
    let served = Served::start(&cluster, &flags)?;
    for mode in ["disable", "require"] {
        let place = format!("user=ada sslmode={mode}");
        let found = printed(client(&served, &place, "right"), "select 42")?;
        assert_eq!(found, "42\n", "{mode}");
    }
    Ok(())
}

#[test]
fn a_driver_comes_in_and_cancels() -> Result<()> {
    let cluster = cluster()?;
    let served = Served::start(&cluster, &["--listen", "127.0.0.1"])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(served.port()).user("ada").dbname("postgres");
        let refused = config.connect(tokio_postgres::NoTls).await.err();
        ensure!(refused.is_some(), "a password is needed");
        let (client, connection) = config.password("right").connect(tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let rows = client.query("select v from t where i < $1", &[&4_i32]).await?;
        ensure!(rows.len() == 3);
        let cancel = client.cancel_token();
        let long = "select count(*) from t a, t b where a.i * 1.5 < -b.i";
        let (ended, _) = tokio::join!(client.query(long, &[]), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel_query(tokio_postgres::NoTls).await
        });
        let ended = ended.err().context("it was cancelled")?;
        ensure!(format!("{ended:?}").contains("57014"), "{ended:?}");
        Ok(())
    })
}

/// Nobody can tell by the salt which roles there are: it is the one that the cluster's own server gives.
#[test]
fn an_unknown_role_has_the_salt_that_the_server_gives_it() -> Result<()> {
    let (cluster, expected) = served::cluster_with_salt("nobody")?;
    let served = Served::start(&cluster, &["--listen", "127.0.0.1"])?;
    let salt = |user: &str| Wire::plain(&served)?.salt(user);
    assert_eq!(salt("nobody")?, expected);
    ensure!(salt("nobody")? == expected, "a second time");
    let others = [salt("somebody")?, salt("expired")?, salt("aged")?, salt("ada")?];
    ensure!(others.iter().all(|other| *other != expected), "{others:?}");
    assert_eq!(salt("aged")?, salt("aged")?);
    Ok(())
}

#[test]
fn tls_can_begin_with_the_first_byte() -> Result<()> {
    let cluster = cluster()?;
    let authority = Authority::new()?;
    let served = Served::start(&cluster, &authority.flags(&["--listen", "127.0.0.1"]))?;
    let asked = Wire::direct(&served, &authority, Some("postgresql"))?.offered("ada")?;
    assert_eq!(asked, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    // Neither without the protocol's name, nor with another's.
    for protocol in [None, Some("http/1.1")] {
        let offered =
            Wire::direct(&served, &authority, protocol).and_then(|mut wire| wire.offered("ada"));
        ensure!(offered.is_err(), "{protocol:?}: {offered:?}");
    }
    // By a request the name may be left out, but not another's given.
    Wire::requested(&served, &authority, None)?.offered("ada")?;
    Wire::requested(&served, &authority, Some("postgresql"))?.offered("ada")?;
    let other =
        Wire::requested(&served, &authority, Some("h2")).and_then(|mut wire| wire.offered("ada"));
    ensure!(other.is_err());
    Ok(())
}

#[test]
fn who_takes_the_channel_binding_away_is_found_out() -> Result<()> {
    let cluster = cluster()?;
    let authority = Authority::new()?;
    let served = Served::start(&cluster, &authority.flags(&["--listen", "127.0.0.1"]))?;
    let told = |mechanism: &str, first: &str| {
        let mut wire = Wire::requested(&served, &authority, None)?;
        wire.offered("ada")?;
        wire.respond(mechanism, first)?;
        wire.next()
    };
    let refused = [
        ("SCRAM-SHA-256", "y,,n=,r=abc", "28000"),
        ("SCRAM-SHA-256", "p=tls-server-end-point,,n=,r=abc", "08P01"),
        ("SCRAM-SHA-256-PLUS", "n,,n=,r=abc", "08P01"),
        ("SCRAM-SHA-256-PLUS", "p=tls-unique,,n=,r=abc", "08P01"),
        ("SCRAM-SHA-1", "n,,n=,r=abc", "08P01"),
        ("SCRAM-SHA-256", "n,a=bob,n=,r=abc", "0A000"),
        ("SCRAM-SHA-256", "n,,m=x,n=,r=abc", "0A000"),
    ];
    for (mechanism, first, state) in refused {
        let (kind, body) = told(mechanism, first)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        ensure!(kind == b'E' && body.contains(state), "{mechanism} {first}: {body}");
    }
    let (kind, _) = told("SCRAM-SHA-256", "n,,n=,r=abc")?;
    assert_eq!(kind, b'R');
    Ok(())
}

#[test]
fn clients_that_do_not_keep_to_the_protocol_end_alone() -> Result<()> {
    let cluster = cluster()?;
    let authority = Authority::new()?;
    let flags =
        authority.flags(&["--listen", "127.0.0.1", "--authentication-timeout", "2", "-N", "3"]);
    let served = Served::start(&cluster, &flags)?;
    let request = [&8_i32.to_be_bytes()[..], &(1234 << 16 | 5679_i32).to_be_bytes()].concat();

    // Bytes in the clear behind the request, which somebody between the two put there: none of them are taken for the client's own.
    let mut stuffed = served.connect()?;
    stuffed.write_all(&[&request[..], &wire::startup("ada")].concat())?;
    let told = wire::rest(&mut stuffed);
    ensure!(!told.starts_with(b"S"), "{told:?}");
    ensure!(String::from_utf8_lossy(&told).contains("unencrypted data"), "{told:?}");

    // No handshake behind the request, and none that is one behind its first byte.
    for garbage in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\xff\xff\x01", &wire::startup("ada")]
    {
        let mut stream = served.connect()?;
        stream.write_all(&request)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        assert_eq!(&answer, b"S");
        stream.write_all(garbage)?;
        let told = wire::rest(&mut stream);
        ensure!(!told.contains(&b'R'), "{told:?}");
    }
    for garbage in [&b"\x16"[..], b"\x16\x03\x01\0\x05hello", &[0x16; 4000], b"\0\0\0\x04", b"\xff"]
    {
        let mut stream = served.connect()?;
        stream.write_all(garbage)?;
        drop(stream);
    }
    // Answers that are none, too long, or of another kind.
    for (kind, body) in
        [(b'p', &b"x"[..]), (b'p', &[b'x'; 4000]), (b'Q', b"select 1\0"), (b'p', b"")]
    {
        let mut wire = Wire::requested(&served, &authority, None)?;
        wire.offered("ada")?;
        wire.send(kind, body)?;
        let (kind, body) = wire.next()?;
        let body = String::from_utf8_lossy(&body).into_owned();
        ensure!(kind == b'E' && body.contains("08P01"), "{body}");
    }
    // Who stalls in the middle of its authentication, in a handshake, or says nothing, holds a place for so long only.
    let mut stalled = Wire::requested(&served, &authority, None)?;
    stalled.offered("ada")?;
    stalled.respond("SCRAM-SHA-256", "n,,n=,r=abc")?;
    assert_eq!(stalled.next()?.0, b'R');
    let silent: Vec<_> = (0..5).map(|_| served.connect()).collect::<Result<_>>()?;
    // No places are left for the next one, but those that are in are served, and others come in later.
    let (kind, body) = stalled.next()?;
    ensure!(
        kind == b'E' && String::from_utf8_lossy(&body).contains("authentication due to timeout")
    );
    for mut silent in silent {
        ensure!(wire::rest(&mut silent).is_empty());
    }
    let found = printed(client(&served, "user=ada sslmode=require", "right"), "select 41 + 1")?;
    assert_eq!(found, "42\n");
    Ok(())
}

#[test]
fn what_would_be_unsafe_does_not_start() -> Result<()> {
    let cluster = cluster()?;
    let (authority, other) = (Authority::new()?, Authority::new()?);
    let fails = |flags: &[&str]| served::fails_to_start(&cluster, flags);
    for host in ["0.0.0.0", "*", "::", "127.0.0.1,0.0.0.0"] {
        let (code, told) = fails(&["--listen", host])?;
        ensure!(code == 2 && told.contains("--tls-cert"), "{host}: {code} {told}");
    }
    let (certificate, key) = (authority.path("server.crt"), authority.path("server.key"));
    let with = |certificate: &str, key: &str| {
        fails(&["--listen", "127.0.0.1", "--tls-cert", certificate, "--tls-key", key])
    };
    let (code, told) = with(&certificate, &other.path("server.key"))?;
    ensure!(code == 1 && told.contains(&certificate), "another's key: {told}");
    let (code, told) = with("/nonexistent.crt", &key)?;
    ensure!(code == 1 && told.contains("/nonexistent.crt"), "{told}");
    let (code, told) = with(&key, &key)?;
    ensure!(code == 1 && told.contains("no certificate"), "{told}");
    let (code, told) = with(&certificate, &certificate)?;
    ensure!(code == 1 && told.contains("private key"), "{told}");
    authority.set_key_mode(0o644)?;
    let (code, told) = with(&certificate, &key)?;
    ensure!(code == 1 && told.contains("0600"), "{told}");
    for flags in [
        &["--tls-cert", &certificate, "--tls-key", &key][..],
        &["--listen", "127.0.0.1", "--tls-cert", &certificate],
        &["--listen", "127.0.0.1", "--allow-plaintext"],
        &["--listen", "127.0.0.1", "--exec", "true"],
        &["--listen", ""],
    ] {
        let (code, told) = fails(flags)?;
        ensure!(code == 2, "{flags:?}: {told}");
    }
    Ok(())
}
