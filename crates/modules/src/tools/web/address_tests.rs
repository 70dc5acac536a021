//! Addresses that may and may not be reached, in all the ways they can be written.

use super::*;

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn strict() -> Policy {
    Policy::new(&[], &[], &[], Private::Denied).unwrap()
}

fn check(policy: &Policy, url: &str) -> Result<(), Refused> {
    policy.check(&Url::parse(url).unwrap())
}

#[test]
fn what_is_not_public_is_refused_however_it_is_written() {
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://0/",
        "http://10.1.2.3/",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::10.0.0.1]/",
        "http://[64:ff9b:1::1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://metadata.google.internal/",
        "http://printer.local/",
    ] {
        assert!(check(&strict(), url).is_err(), "{url}");
    }
}

#[test]
fn what_is_public_is_allowed() {
    for url in [
        "http://93.184.215.14/",
        "https://example.com/",
        "http://s10.example/",
        "http://172.15.0.1/",
        "http://172.32.0.1/",
        "http://100.63.0.1/",
        "http://[2606:4700::1111]/",
        "http://[64:ff9b::8.8.8.8]/",
        "http://locallocalhost.example/",
    ] {
        assert_eq!(check(&strict(), url), Ok(()), "{url}");
    }
}

#[test]
fn schemes_and_credentials_are_refused() {
    for url in ["file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "data:text/plain,x"] {
        assert!(matches!(check(&strict(), url), Err(Refused::Scheme { .. })), "{url}");
    }
    assert_eq!(check(&strict(), "http://me:secret@example.com/"), Err(Refused::Credentials));
}

#[test]
fn a_name_that_resolves_to_a_private_address_is_refused_when_connecting() {
    let sockets =
        |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
    let refused = strict().permitted("rebound.example", sockets(&["127.0.0.1:0", "[::1]:0"]));
    assert!(matches!(refused, Err(Refused::NotPublic { .. })), "{refused:?}");
    let mixed = strict().permitted("mixed.example", sockets(&["10.0.0.1:0", "93.184.215.14:0"]));
    assert_eq!(mixed, Ok(sockets(&["93.184.215.14:0"])));
}

#[tokio::test]
async fn the_clients_resolver_refuses_the_loopback_name() {
    let name = || "localhost".parse::<Name>().unwrap();
    let refused = Checked(Arc::new(strict())).resolve(name()).await.err().unwrap();
    assert!(refused.downcast_ref::<Refused>().is_some(), "{refused}");
    let open = Policy::new(&[], &[], &strings(&["localhost"]), Private::Denied).unwrap();
    assert!(Checked(Arc::new(open)).resolve(name()).await.unwrap().count() > 0);
}

#[test]
fn hosts_are_compared_by_their_parts() {
    let allowed = strings(&["example.com", "*.example.org", "93.184.0.0/16", "2606:4700::/32"]);
    let policy = Policy::new(&allowed, &[], &[], Private::Denied).unwrap();
    for url in
        ["http://example.com/", "http://a.b.example.com/", "http://a.example.org/", "http://93.184.1.1/"]
    {
        assert_eq!(check(&policy, url), Ok(()), "{url}");
    }
    for url in ["http://8.8.8.8/", "http://[2607::1]/"] {
        assert!(matches!(check(&policy, url), Err(Refused::NotAllowed { .. })), "{url}");
    }
    // A range in the list can only be compared when the address is known.
    let found = vec!["93.184.9.9:0".parse().unwrap(), "8.8.8.8:0".parse().unwrap()];
    assert_eq!(policy.permitted("badexample.com", found.clone()), Ok(vec![found[0]]));

    let names = Policy::new(&strings(&["example.com"]), &[], &[], Private::Denied).unwrap();
    for url in ["http://badexample.com/", "http://example.com.evil.example/", "http://example.org/"] {
        assert!(matches!(check(&names, url), Err(Refused::NotAllowed { .. })), "{url}");
    }
}

#[test]
fn what_is_blocked_stays_blocked_and_older_spellings_are_networks() {
    let blocked =
        strings(&["localhost", "127.0.0.1", "0.0.0.0", "192.168.", "10.", "172.16.", "evil.example"]);
    let policy = Policy::new(&[], &blocked, &[], Private::Allowed).unwrap();
    for url in ["http://10.9.9.9/", "http://192.168.0.1/", "http://www.evil.example/", "http://localhost/"] {
        assert!(matches!(check(&policy, url), Err(Refused::Blocked { .. })), "{url}");
    }
    assert_eq!(check(&policy, "http://s10.example/"), Ok(()));
    assert_eq!(check(&policy, "http://172.17.0.1/"), Ok(()));
}

#[test]
fn private_networks_open_without_opening_the_metadata_of_clouds() {
    let policy = Policy::new(&[], &[], &[], Private::Allowed).unwrap();
    assert_eq!(check(&policy, "http://10.0.0.1/"), Ok(()));
    assert!(check(&policy, "http://169.254.169.254/").is_err());
    let named = Policy::new(&[], &[], &strings(&["wiki.internal", "10.1.0.0/16"]), Private::Denied).unwrap();
    assert_eq!(check(&named, "http://wiki.internal/"), Ok(()));
    assert_eq!(check(&named, "http://10.1.2.3/"), Ok(()));
    assert!(check(&named, "http://10.2.2.3/").is_err());
    assert!(check(&named, "http://other.internal/").is_err());
}

#[test]
fn what_is_no_host_is_refused_when_it_is_configured() {
    for text in ["", "10.0.0.0/99", "a b", "/8"] {
        assert!(Pattern::parse(text).is_err(), "{text}");
    }
}
