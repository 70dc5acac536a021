//! The time zone of the machine.

use std::ffi::OsStr;
use std::path::Path;

use jiff::tz::TimeZone;

use crate::environment;

/// Where unix keeps the zone: a link into the database, or a copy of one of its files.
const FILE: &str = "/etc/localtime";
/// What comes before the zone's name in the path of its file.
const DATABASE: &str = "zoneinfo/";

/// The zone that the environment or the machine says; UTC when nobody does.
pub(super) fn here() -> TimeZone {
    // The usual case needs one file. Finding it by its name would read through the whole database first.
    // What the variable says is read by the library that knows how.
    let told = environment::own().contains_key(OsStr::new("TZ"));
    let direct = if told { None } else { linked(Path::new(FILE)) };
    direct.unwrap_or_else(TimeZone::system)
}

/// The zone that a link into the database leads to.
fn linked(link: &Path) -> Option<TimeZone> {
    let file = link.read_link().ok()?;
    let (_, name) = file.to_str()?.rsplit_once(DATABASE)?;
    let bytes = std::fs::read(link).ok()?;
    TimeZone::tzif(name, &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest file of a zone: version 1, nothing in it but one type, UTC.
    fn utc() -> Vec<u8> {
        let mut bytes = b"TZif".to_vec();
        bytes.extend([0; 16]);
        // Indicators of UTC and of standard time, leap seconds, transitions, types, characters.
        for count in [0_u32, 0, 0, 0, 1, 4] {
            bytes.extend(count.to_be_bytes());
        }
        bytes.extend([0; 6]);
        bytes.extend(b"UTC\0");
        bytes
    }

    #[cfg(unix)]
    #[test]
    fn a_link_into_the_database_names_the_zone_and_anything_else_is_left_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let zones = dir.path().join("zoneinfo/Somewhere");
        std::fs::create_dir_all(&zones).unwrap();
        std::fs::write(zones.join("Quiet"), utc()).unwrap();
        let link = dir.path().join("localtime");
        std::os::unix::fs::symlink(zones.join("Quiet"), &link).unwrap();
        let zone = linked(&link).unwrap();
        assert_eq!(zone.iana_name(), Some("Somewhere/Quiet"));
        assert!(linked(&dir.path().join("missing")).is_none());
        std::fs::write(zones.join("Quiet"), "no zone").unwrap();
        assert!(linked(&link).is_none());
        let copy = dir.path().join("copy");
        std::fs::write(&copy, utc()).unwrap();
        assert!(linked(&copy).is_none(), "a copy has no name");
    }
}
