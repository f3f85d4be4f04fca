//! Estimates the bytes and the cost of a query of CloudWatch Logs Insights before it runs. Pure.
//!
//! Separate because a query is billed by all bytes that its log groups stored in the time range,
//! even if it finds few lines. `DescribeLogGroups` returns only the total of stored bytes. The
//! estimate assumes that lines are written evenly, so a time range contains a proportional share of
//! that total. The total is an upper bound.

/// The price of scanning a GB. <https://aws.amazon.com/cloudwatch/pricing/>
const GIGABYTE_MILLIDOLLARS: u64 = 5;
const GIGABYTE: u64 = 1_000_000_000;
/// The user must confirm a query that scans more than this number of bytes, because it costs more
/// than $0.10.
pub(crate) const LARGE_SCAN_BYTES: u64 = 20 * GIGABYTE;

/// The size and the age of a log group, from `DescribeLogGroups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogGroup {
    pub(crate) stored_bytes: u64,
    /// The time of the oldest line that the log group may contain.
    pub(crate) oldest_ms: u64,
}

/// The estimated number of bytes that a query scans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The estimate for the time range, if lines are written evenly.
    pub(crate) bytes: u64,
    /// The total of stored bytes, which is the upper bound.
    pub(crate) bytes_max: u64,
}

impl Scan {
    /// Estimates the number of bytes that a query of these log groups scans in a time range.
    pub(crate) fn estimate(
        groups: &[LogGroup],
        (since_ms, until_ms): (u64, u64),
        now_ms: u64,
    ) -> Self {
        let in_range = |group: &LogGroup| {
            let lifetime_ms = now_ms.saturating_sub(group.oldest_ms).max(1);
            let range_ms = until_ms.min(now_ms).saturating_sub(since_ms.max(group.oldest_ms));
            let bytes = u128::from(group.stored_bytes) * u128::from(range_ms.min(lifetime_ms));
            u64::try_from(bytes / u128::from(lifetime_ms)).unwrap_or(u64::MAX)
        };
        Self {
            bytes: groups.iter().map(in_range).fold(0, u64::saturating_add),
            bytes_max: groups.iter().map(|group| group.stored_bytes).fold(0, u64::saturating_add),
        }
    }

    /// Returns true if the user must confirm the query.
    pub(crate) fn is_large(self) -> bool {
        self.bytes > LARGE_SCAN_BYTES
    }

    /// Describes the bytes and the cost of the query for people.
    pub(crate) fn shown(self) -> String {
        format!(
            "about {} of log lines ({}), at most {} ({}), the size of the log groups",
            size(self.bytes),
            price(self.bytes),
            size(self.bytes_max),
            price(self.bytes_max)
        )
    }
}

/// Formats a number of bytes: `1.2 GB`.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000 * GIGABYTE, "TB"), (GIGABYTE, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = bytes / (unit / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

/// Formats the cost of scanning this many bytes, rounded up: `$0.02`.
fn price(bytes: u64) -> String {
    let millidollars = u128::from(bytes) * u128::from(GIGABYTE_MILLIDOLLARS);
    let cents = millidollars.div_ceil(u128::from(GIGABYTE) * 10);
    match cents {
        0 | 1 => "less than $0.01".to_owned(),
        cents => format!("${}.{:02}", cents / 100, cents % 100),
    }
}

#[cfg(test)]
mod tests {
    use delivery::time::duration::{DAY_MS, HOUR_MS};

    use super::*;

    #[test]
    fn a_scan_is_a_share_of_what_is_stored_and_never_more() {
        let now_ms = 100 * DAY_MS;
        let group =
            |stored_bytes, days| LogGroup { stored_bytes, oldest_ms: now_ms - days * DAY_MS };
        let all = [group(24 * GIGABYTE, 1), group(300 * GIGABYTE, 30)];
        let estimated =
            |hours: u64| Scan::estimate(&all, (now_ms - hours * HOUR_MS, now_ms), now_ms).bytes;
        // The first group grows by 1 GB an hour, and the second by 10 GB a day.
        assert_eq!((estimated(12), estimated(24)), (17 * GIGABYTE, 34 * GIGABYTE));
        // The first group is a day old.
        assert_eq!((estimated(48), estimated(24 * 60)), (44 * GIGABYTE, 324 * GIGABYTE));
        let before = Scan::estimate(&all, (now_ms - 50 * DAY_MS, now_ms - 40 * DAY_MS), now_ms);
        assert_eq!(before, Scan { bytes: 0, bytes_max: 324 * GIGABYTE });
    }

    #[test]
    fn only_a_large_scan_is_asked_about_and_a_price_is_rounded_up() {
        let scan = |bytes| Scan { bytes, bytes_max: 4 * bytes };
        assert!(!scan(LARGE_SCAN_BYTES).is_large() && scan(LARGE_SCAN_BYTES + 1).is_large());
        let said = scan(2_100_000_000).shown();
        let expected =
            "about 2.1 GB of log lines ($0.02), at most 8.4 GB ($0.05), the size of the log groups";
        assert_eq!(said, expected);
        assert!(scan(12_345).shown().starts_with("about 12.3 kB of log lines (less than $0.01)"));
        assert!(scan(0).shown().starts_with("about 0 bytes"));
    }
}
