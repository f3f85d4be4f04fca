//! Unit prices: list prices of us-east-1, in US dollars.
//!
//! Separate because prices change. Each names the page that sets it. The numbers are those that
//! third parties quote; [`PRICES_FROM`] says up to when.
//!
//! Ignores free tiers, which belong to the account, and volume discounts, which begin at 100 billion
//! SQS requests, 7.5 billion GB-seconds (6 billion on x86_64) and 10 TB of logs a month.

use crate::text::grouped;

/// The origin of the numbers, for people.
pub(crate) const PRICES_FROM: &str = "us-east-1 list prices as third parties quoted them up to June 2026, \
    no free tier or volume discount taken off; the JSON names the page that sets each";

/// A millionth of a millionth of a dollar: every price below is a whole number of them.
pub(crate) const DOLLAR: u128 = 1_000_000_000_000;

/// The price of one unit.
#[derive(Debug)]
pub(crate) struct Price {
    /// The unit.
    pub(crate) unit: &'static str,
    /// The price of one unit in millionths of a millionth of a dollar.
    pub(crate) pico_dollars: u128,
    /// The number of units that the price is quoted for.
    pub(crate) quoted_for: u128,
    /// The page that sets it.
    pub(crate) source: &'static str,
}

const SQS: &str = "https://aws.amazon.com/sqs/pricing/";
const LAMBDA: &str = "https://aws.amazon.com/lambda/pricing/";
const CLOUDWATCH: &str = "https://aws.amazon.com/cloudwatch/pricing/";
const S3: &str = "https://aws.amazon.com/s3/pricing/";

const fn per_million(unit: &'static str, cents: u128, source: &'static str) -> Price {
    Price { unit, pico_dollars: cents * (DOLLAR / 100) / 1_000_000, quoted_for: 1_000_000, source }
}

/// A request to a standard queue; each 64 KiB of its payload is one.
pub(crate) const SQS_REQUEST: Price = per_million("requests", 40, SQS);
/// The surcharge of a request with a message group. Guides name the surcharge but not the calls that
/// it applies to; it is counted for each.
pub(crate) const FAIR_REQUEST: Price = per_million("requests", 10, SQS);
/// An invocation.
pub(crate) const INVOCATION: Price = per_million("invocations", 20, LAMBDA);
/// A second of 1 GB on arm64.
pub(crate) const ARM64: Price =
    Price { unit: "GB-s", pico_dollars: 13_333_400, quoted_for: 1, source: LAMBDA };
/// A second of 1 GB on x86_64.
pub(crate) const X86_64: Price =
    Price { unit: "GB-s", pico_dollars: 16_666_700, quoted_for: 1, source: LAMBDA };
/// Ingested logs.
pub(crate) const LOGS: Price =
    Price { unit: "GB", pico_dollars: DOLLAR / 2, quoted_for: 1, source: CLOUDWATCH };
/// Logs stored for a month, not compressed.
pub(crate) const LOGS_KEPT: Price =
    Price { unit: "GB-months", pico_dollars: DOLLAR / 100 * 3, quoted_for: 1, source: CLOUDWATCH };
/// A custom metric: a name with one combination of dimensions, a month.
pub(crate) const METRIC: Price = Price {
    unit: "metric-months",
    pico_dollars: DOLLAR / 10 * 3,
    quoted_for: 1,
    source: CLOUDWATCH,
};
/// Writing an object.
pub(crate) const PUT: Price =
    Price { unit: "writes", pico_dollars: DOLLAR / 200_000, quoted_for: 1_000, source: S3 };
/// Objects stored for a month.
pub(crate) const STORED: Price =
    Price { unit: "GB-months", pico_dollars: DOLLAR / 1_000 * 23, quoted_for: 1, source: S3 };
/// Data that leaves for the internet.
pub(crate) const DATA_OUT: Price = Price {
    unit: "GB",
    pico_dollars: DOLLAR / 100 * 9,
    quoted_for: 1,
    source: "https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer",
};

/// An event on a bus, and its delivery by an API destination.
pub(crate) const EVENT_BUS: Price =
    per_million("events", 100, "https://aws.amazon.com/eventbridge/pricing/");
pub(crate) const API_DESTINATION: Price =
    per_million("attempts", 20, "https://aws.amazon.com/eventbridge/pricing/");
/// A schedule that runs once.
pub(crate) const SCHEDULE: Price =
    per_million("schedules", 100, "https://aws.amazon.com/eventbridge/pricing/");
/// A publication, and its delivery to an HTTP endpoint.
pub(crate) const SNS_PUBLISH: Price =
    per_million("events", 50, "https://aws.amazon.com/sns/pricing/");
pub(crate) const SNS_HTTP: Price =
    per_million("attempts", 60, "https://aws.amazon.com/sns/pricing/");
/// An operation of Event Grid's basic tier: a publication or an attempt.
pub(crate) const EVENT_GRID: Price =
    per_million("operations", 60, "https://azure.microsoft.com/pricing/details/event-grid/");

impl Price {
    /// The cost of this many thousandths of a unit, in millionths of a millionth of a dollar.
    pub(crate) const fn of(&self, thousandths: u64) -> u128 {
        thousandths as u128 * self.pico_dollars / 1_000
    }

    /// The price as it is quoted, for people.
    pub(crate) fn quoted(&self) -> String {
        let price = self.pico_dollars * self.quoted_for;
        let digits = format!("{}.{:012}", price / DOLLAR, price % DOLLAR);
        let digits = digits.trim_end_matches('0');
        let shortest = digits.find('.').map_or(digits.len(), |point| point + 3);
        let digits = format!("{digits:0<shortest$}");
        match self.quoted_for {
            1_000_000 => format!("${digits} / million"),
            1_000 => format!("${digits} / 1,000"),
            _ => format!("${digits} / {}", self.unit.replace("months", "month")),
        }
    }
}

/// Millionths of a millionth of a dollar in whole cents, rounded to the nearest; below ten dollars
/// in hundredths of a cent.
pub(crate) fn dollars(pico_dollars: u128) -> String {
    let (digits, step) = if pico_dollars < 10 * DOLLAR { (4, 10_000) } else { (2, 100) };
    let rounded = (pico_dollars * step + DOLLAR / 2) / DOLLAR;
    let whole = u64::try_from(rounded / step).unwrap_or(u64::MAX);
    format!("{}.{:0digits$}", grouped(whole), rounded % step)
}
