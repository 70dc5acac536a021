//! Which addresses may be reached. Asked twice: for what a URL says before anything is sent, and for what its name
//! resolves to at the moment of connecting, so that a name cannot mean one thing when it is checked and another when it
//! is used.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Why an address is not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("`{scheme}` addresses are not fetched; only http and https are")]
    Scheme { scheme: String },
    #[error("the address names no host")]
    NoHost,
    #[error("the address holds a user name or password, which would end up in logs; leave it out")]
    Credentials,
    #[error("host `{host}` is blocked by the configuration (`blocked_hosts`)")]
    Blocked { host: String },
    #[error("host `{host}` is not among the hosts the configuration allows (`allowed_hosts`)")]
    NotAllowed { host: String },
    #[error(
        "`{host}` leads to {address}, which is no public address; only the configuration can allow it (`private_hosts`)"
    )]
    NotPublic { host: String, address: IpAddr },
    #[error(
        "`{host}` is a name of this machine or its network; only the configuration can allow it (`private_hosts`)"
    )]
    LocalName { host: String },
}

/// Whether private networks are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Private {
    Denied,
    Allowed,
}

/// The rules of a session.
#[derive(Debug)]
pub(super) struct Policy {
    allowed: Vec<Pattern>,
    blocked: Vec<Pattern>,
    private_hosts: Vec<Pattern>,
    private: Private,
}

/// Hosts, as a configuration writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// A name and everything below it.
    Domain(String),
    /// Only what is below a name.
    Below(String),
    /// Addresses with a common beginning.
    Net { net: u128, mask: u128 },
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is neither a host nor a range of addresses");
        let plain = text.trim().trim_end_matches('.').trim_start_matches('[').trim_end_matches(']');
        let plain = plain.to_ascii_lowercase();
        if let Some((address, bits)) = plain.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| wrong())?;
            let bits: u32 = bits.parse().map_err(|_| wrong())?;
            let bits = if address.is_ipv4() { bits.checked_add(96) } else { Some(bits) };
            return Self::net(address, bits.ok_or_else(wrong)?).ok_or_else(wrong);
        }
        if let Ok(address) = plain.parse::<IpAddr>() {
            return Self::net(address, 128).ok_or_else(wrong);
        }
        // `192.168.` is how older configurations write a network.
        let parts: Vec<_> = plain.split('.').collect();
        if let Ok(parts) = parts.iter().map(|part| part.parse::<u8>()).collect::<Result<Vec<_>, _>>() {
            let mut octets = [0; 4];
            let count = parts.len().min(4);
            octets.iter_mut().zip(&parts).for_each(|(octet, part)| *octet = *part);
            let bits = 96 + 8 * u32::try_from(count).map_err(|_| wrong())?;
            return Self::net(IpAddr::from(octets), bits).ok_or_else(wrong);
        }
        let (below, name) = match plain.strip_prefix("*.").or_else(|| plain.strip_prefix('.')) {
            Some(name) => (true, name),
            None => (false, plain.as_str()),
        };
        let Ok(Host::Domain(name)) = Host::parse(name) else { return Err(wrong()) };
        Ok(if below { Self::Below(name) } else { Self::Domain(name) })
    }

    fn net(address: IpAddr, bits: u32) -> Option<Self> {
        let mask = match bits {
            0 => 0,
            1..=128 => u128::MAX << (128 - bits),
            _ => return None,
        };
        Some(Self::Net { net: number(address) & mask, mask })
    }

    fn fits_name(&self, host: &str) -> bool {
        let below = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        match self {
            Self::Domain(name) => host == name || below(name),
            Self::Below(name) => below(name),
            Self::Net { .. } => false,
        }
    }

    fn fits_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Net { net, mask } if number(address) & mask == *net)
    }
}

/// Every address as a number of one kind, so that an IPv4 address is found however it is written.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

impl Policy {
    pub(super) fn new(
        allowed: &[String],
        blocked: &[String],
        private_hosts: &[String],
        private: Private,
    ) -> Result<Self, String> {
        let parse =
            |texts: &[String]| texts.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>();
        Ok(Self {
            allowed: parse(allowed)?,
            blocked: parse(blocked)?,
            private_hosts: parse(private_hosts)?,
            private,
        })
    }

    /// What a URL says, before anything is resolved or sent.
    pub(super) fn check(&self, url: &Url) -> Result<(), Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme { scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let address = match url.host().ok_or(Refused::NoHost)? {
            Host::Domain(name) => return self.check_name(name),
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
        };
        let host = address.to_string();
        if !self.allowed.is_empty() && !self.allowed.iter().any(|pattern| pattern.fits_address(address)) {
            return Err(Refused::NotAllowed { host });
        }
        self.check_address(&host, address)
    }

    fn check_name(&self, name: &str) -> Result<(), Refused> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let host = || name.clone();
        if self.blocked.iter().any(|pattern| pattern.fits_name(&name)) {
            return Err(Refused::Blocked { host: host() });
        }
        // A range of addresses can only be compared once the name is resolved.
        let by_name = |pattern: &Pattern| matches!(pattern, Pattern::Net { .. }) || pattern.fits_name(&name);
        if !self.allowed.is_empty() && !self.allowed.iter().any(by_name) {
            return Err(Refused::NotAllowed { host: host() });
        }
        let local = ["localhost", "local", "internal", "localdomain", "home.arpa"];
        let is_local = local.iter().any(|end| Pattern::Domain((*end).to_owned()).fits_name(&name));
        if is_local && self.private == Private::Denied && !self.opened_by_name(&name) {
            return Err(Refused::LocalName { host: host() });
        }
        Ok(())
    }

    fn opened_by_name(&self, name: &str) -> bool {
        // An address in the list is compared when it is known.
        self.private_hosts.iter().any(|pattern| pattern.fits_name(name))
    }

    /// What a host turned out to be.
    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        if self.blocked.iter().any(|pattern| pattern.fits_address(address)) {
            return Err(Refused::Blocked { host: host.to_owned() });
        }
        let named = |pattern: &Pattern| pattern.fits_address(address) || pattern.fits_name(host);
        let reached = match reach(address) {
            Reachable::Public => true,
            Reachable::Private => self.private == Private::Allowed || self.private_hosts.iter().any(named),
            Reachable::Special => self.private_hosts.iter().any(named),
        };
        if reached { Ok(()) } else { Err(Refused::NotPublic { host: host.to_owned(), address }) }
    }

    /// Those of a name's addresses that may be reached; the first refusal when there are none.
    fn permitted(&self, host: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let by_address =
            !self.allowed.is_empty() && !self.allowed.iter().any(|pattern| pattern.fits_name(&host));
        let (mut good, mut refused) = (Vec::new(), None);
        for socket in found {
            let address = socket.ip();
            let fits = !by_address || self.allowed.iter().any(|pattern| pattern.fits_address(address));
            let checked = if fits {
                self.check_address(&host, address)
            } else {
                Err(Refused::NotAllowed { host: host.clone() })
            };
            match checked {
                Ok(()) => good.push(socket),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        match refused {
            Some(why) if good.is_empty() => Err(why),
            _ => Ok(good),
        }
    }
}

/// Resolves names for the client, and lets it connect to nothing that is not permitted.
pub(super) struct Checked(pub(super) Arc<Policy>);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let good = policy.permitted(name.as_str(), found)?;
            Ok(Box::new(good.into_iter()) as Addrs)
        })
    }
}

/// What kind of address it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reachable {
    Public,
    /// Of this machine or its own networks.
    Private,
    /// Where nothing is that a page could come from, or something that should never be asked.
    Special,
}

fn reach(address: IpAddr) -> Reachable {
    match address {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => reach_v6(v6),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reachable {
    match address.octets() {
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Reachable::Private,
        // "This" network, link-local (the metadata of clouds), protocol assignments, documentation, the old 6to4 relay,
        // benchmarks, multicast and what is reserved.
        [0 | 224.., ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Reachable::Special,
        // The one public address of a cloud that answers with its machines' secrets.
        [168, 63, 129, 16] => Reachable::Special,
        _ => Reachable::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reachable {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reachable::Private,
        // IPv4 in its several clothes: mapped, compatible, translated, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] => Reachable::Private,
        // Teredo and its neighbours, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reachable::Special,
        [0x2000..=0x3fff, ..] => Reachable::Public,
        _ => Reachable::Special,
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
