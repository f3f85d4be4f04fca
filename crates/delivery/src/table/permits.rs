//! Permits limit the concurrent requests of all processes to a destination.
//!
//! The item of a destination contains the names of the granted permits. A name contains the time at
//! which the permit expires. A permit is valid for a little longer than the longest possible
//! attempt. So the permits of a killed process do not block others for long. A process adds its
//! permits only if few enough are granted, and removes them when it no longer needs them.
//!
//! The item stays small: above [`PERMITS_MAX`] concurrent requests, each permit allows several
//! requests.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Maximum number of permit names in one item.
pub const PERMITS_MAX: u32 = 50;
/// Maximum validity of a permit. It allows for a late response, which may take as long as two
/// timeouts. A longer validity was written by a process with a wrong clock.
const VALID_MAX_MS: u64 = 30 * crate::time::duration::MINUTE_MS;

/// A granted permit, identified by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permit {
    /// End of the permit's validity, in milliseconds since 1970.
    pub until_ms: u64,
    /// Random number that identifies the process that holds the permit.
    pub process: u32,
    /// Number that distinguishes the permits of one process.
    pub number: u32,
}

/// The division of the concurrent requests to a destination into permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Number of concurrent requests that one permit allows.
    pub requests: u32,
    /// Number of permits that exist for the destination.
    pub permits: u32,
}

/// A request for permits of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakePermits {
    /// The permits to take. Either all or none are granted.
    pub permits: Vec<Permit>,
    /// Permits to return in exchange. If one of them is no longer granted, the request is refused.
    pub instead_of: Vec<Permit>,
    /// Number of permits that exist for the destination.
    pub most: u32,
    /// True if permits may be granted only while no delivery waits in the queue.
    pub only_if_nobody_waits: bool,
}

/// The result of a request for permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermitAnswer {
    /// All requested permits were granted.
    Taken,
    /// No permit was granted. The contents of the item show the reason.
    Refused(Refusal),
}

/// The contents of a destination's item at the time of a refused request for permits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// The permits that are granted at the moment.
    pub given_out: BTreeSet<Permit>,
    /// The time until which all turns are taken, in microseconds since 1970; `None` if the item has
    /// no queue.
    pub line_us: Option<u64>,
    /// Average duration of an attempt in milliseconds, as reported by the process that last
    /// returned permits.
    pub takes_ms: Option<u64>,
}

impl Shares {
    /// Divides this number of concurrent requests into permits.
    #[must_use]
    pub fn new(most: u32) -> Self {
        let most = most.max(1);
        let requests = most.div_ceil(PERMITS_MAX);
        // The number is rounded down, so that there are never too many requests.
        Self { requests, permits: most / requests }
    }

    /// Returns the number of permits that this number of requests needs.
    #[must_use]
    pub fn permits_for(self, requests: u32) -> u32 {
        requests.div_ceil(self.requests).min(self.permits)
    }
}

impl TakePermits {
    /// Returns the maximum number of permits that may already be granted if this request is to
    /// succeed. Returns `None` if the request alone exceeds the limit.
    #[must_use]
    pub fn left(&self) -> Option<u32> {
        let count = |permits: &[Permit]| u32::try_from(permits.len()).unwrap_or(u32::MAX);
        self.most.saturating_add(count(&self.instead_of)).checked_sub(count(&self.permits))
    }

    /// True if the requested permits are already granted, because the response to an earlier try
    /// was lost.
    #[must_use]
    pub fn has_taken(&self, item: &Refusal) -> bool {
        self.permits.iter().all(|permit| item.given_out.contains(permit))
    }

    /// Returns the result of the request for an item with these contents.
    #[must_use]
    pub fn answer(&self, item: &Refusal, now_ms: u64) -> PermitAnswer {
        if self.has_taken(item) {
            return PermitAnswer::Taken;
        }
        let has_own = self.instead_of.iter().all(|permit| item.given_out.contains(permit));
        let somebody_waits =
            item.line_us.is_some_and(|line_us| line_us > now_ms.saturating_mul(1_000));
        let is_full = self.left().is_none_or(|left| item.given_out.len() > left as usize);
        if is_full || !has_own || (self.only_if_nobody_waits && somebody_waits) {
            return PermitAnswer::Refused(item.clone());
        }
        PermitAnswer::Taken
    }
}

impl Refusal {
    /// Returns the permits that have expired, or that a process with a wrong clock has written.
    #[must_use]
    pub fn expired(&self, now_ms: u64) -> Vec<Permit> {
        let latest_ms = now_ms.saturating_add(VALID_MAX_MS);
        let is_over = |permit: &&Permit| permit.until_ms <= now_ms || permit.until_ms > latest_ms;
        self.given_out.iter().filter(is_over).copied().collect()
    }

    /// Returns how many of `most` permits are not granted.
    #[must_use]
    pub fn left(&self, most: u32) -> u32 {
        most.saturating_sub(u32::try_from(self.given_out.len()).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { until_ms, process, number } = self;
        write!(f, "{until_ms}#{process:08x}#{number:x}")
    }
}

impl FromStr for Permit {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let parsed = || {
            let mut parts = name.split('#');
            let until_ms = parts.next()?.parse().ok()?;
            let process = u32::from_str_radix(parts.next()?, 16).ok()?;
            let number = u32::from_str_radix(parts.next()?, 16).ok()?;
            parts.next().is_none().then_some(Self { until_ms, process, number })
        };
        parsed().ok_or_else(|| format!("{name:?} is not the name of a permit"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(until_ms: u64, number: u32) -> Permit {
        Permit { until_ms, process: 0xa1, number }
    }

    fn item(given_out: &[Permit], line_us: Option<u64>) -> Refusal {
        Refusal { given_out: given_out.iter().copied().collect(), line_us, takes_ms: None }
    }

    #[test]
    fn a_name_is_read_as_it_was_written_and_is_short() {
        let longest = Permit { until_ms: 4_102_444_800_000, process: u32::MAX, number: u32::MAX };
        for permit in [permit(1, 2), longest] {
            assert_eq!(permit.to_string().parse(), Ok(permit));
        }
        assert_eq!(permit(1, 26).to_string(), "1#000000a1#1a");
        // Each name is the key of a map entry, which adds two bytes. The rest of an item has fewer
        // than 300 bytes.
        assert!((longest.to_string().len() + 2) * PERMITS_MAX as usize + 300 < 2_000);
        for broken in ["", "1", "1#a1", "x#a1#1", "1#g#1", "1#a1#1#1"] {
            assert!(broken.parse::<Permit>().is_err(), "{broken}");
        }
    }

    #[test]
    fn permits_are_given_out_until_there_are_as_many_as_the_destination_takes() {
        let wants = |count: u32, only_if_nobody_waits| TakePermits {
            permits: (0..count).map(|number| permit(9_000, 100 + number)).collect(),
            instead_of: Vec::new(),
            most: 3,
            only_if_nobody_waits,
        };
        let refusal = item(&[permit(9_000, 0)], Some(5_000_001));
        assert_eq!(wants(2, false).answer(&refusal, 5_000), PermitAnswer::Taken);
        assert_eq!(wants(3, false).answer(&refusal, 5_000), PermitAnswer::Refused(refusal.clone()));
        assert_eq!(wants(1, true).answer(&refusal, 5_000), PermitAnswer::Refused(refusal.clone()));
        assert_eq!(wants(1, true).answer(&refusal, 5_001), PermitAnswer::Taken);
        assert_eq!((refusal.left(3), refusal.left(0)), (2, 0));
        // The response was lost, and the client repeats the request.
        let after = item(&[permit(9_000, 0), permit(9_000, 100), permit(9_000, 101)], None);
        assert_eq!(wants(2, true).answer(&after, 5_000), PermitAnswer::Taken);
    }

    #[test]
    fn a_permit_is_exchanged_while_it_is_given_out() {
        let exchange = |instead_of, count| TakePermits {
            permits: (0..count).map(|number| permit(9_000, 100 + number)).collect(),
            instead_of: vec![permit(6_000, instead_of)],
            most: 2,
            only_if_nobody_waits: false,
        };
        let full = item(&[permit(6_000, 0), permit(6_000, 1)], None);
        assert_eq!(exchange(1, 1).answer(&full, 5_000), PermitAnswer::Taken);
        assert_eq!(exchange(1, 2).answer(&full, 5_000), PermitAnswer::Refused(full.clone()));
        assert_eq!(exchange(2, 1).answer(&full, 5_000), PermitAnswer::Refused(full.clone()));
        assert_eq!(
            exchange(2, 1).answer(&item(&[], None), 5_000),
            PermitAnswer::Refused(item(&[], None))
        );
    }

    #[test]
    fn permits_of_whoever_is_gone_and_of_a_wrong_clock_have_expired() {
        let now_ms = 5_000;
        let wrong = permit(now_ms + VALID_MAX_MS + 1, 3);
        let item = item(&[permit(5_000, 1), permit(5_001, 2), wrong], None);
        assert_eq!(item.expired(now_ms), [permit(5_000, 1), wrong]);
    }

    #[test]
    fn one_permit_is_for_several_requests_where_there_are_many() {
        for (most, requests, permits) in
            [(0, 1, 1), (1, 1, 1), (50, 1, 50), (51, 2, 25), (100, 2, 50), (1_000, 20, 50)]
        {
            assert_eq!(Shares::new(most), Shares { requests, permits }, "{most}");
            assert!(requests * permits <= most.max(1));
        }
        assert_eq!(Shares::new(100).permits_for(3), 2);
        assert_eq!(Shares::new(100).permits_for(1_000), 50);
    }
}
