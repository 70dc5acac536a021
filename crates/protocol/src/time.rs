//! A point in time as it is written: RFC 3339, UTC, offset `+00:00`, microseconds. It reads no clock.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Microseconds since the Unix epoch. Text only where it leaves the process, so that stamping an event costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point this many microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when the clock went back.
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Out of range only for clocks beyond the year 9999; clamping keeps the line readable.
        let stamp = jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        let civil = jiff::tz::Offset::UTC.to_datetime(stamp);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00",
            civil.year(),
            civil.month(),
            civil.day(),
            civil.hour(),
            civil.minute(),
            civil.second(),
            civil.subsec_nanosecond() / 1_000
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let stamp: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(stamp.as_microsecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_written_with_a_numeric_offset_and_read_back() {
        let stamp = Timestamp::from_micros(1_763_245_489_123_456);
        let json = serde_json::to_string(&stamp).unwrap();
        assert_eq!(json, "\"2025-11-15T22:24:49.123456+00:00\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), stamp);
        assert_eq!(serde_json::from_str::<Timestamp>("\"2025-11-15T22:24:49.123456Z\"").unwrap(), stamp);
    }
}
