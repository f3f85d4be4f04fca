//! Unit prices: list prices of us-east-1, in US dollars.
//!
//! Separate because prices change. Each price names the page that sets it. The numbers are
//! quotations by third parties; [`PRICES_FROM`] has their date.
//!
//! Ignores free tiers, which belong to the account, and volume discounts, which begin at 100
//! billion SQS requests, 7.5 billion GB-seconds and 10 TB of logs a month.

/// The origin of the numbers, for people.
pub(crate) const PRICES_FROM: &str = "us-east-1 list prices as third parties quoted them up to June 2026, \
    no free tier or volume discount taken off; the JSON names the page that sets each";

/// A service and the page that sets its prices.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) page: &'static str,
}

/// The price of a number of units.
#[derive(Debug)]
pub(crate) struct Price {
    pub(crate) service: &'static Service,
    pub(crate) usd: f64,
    pub(crate) per: f64,
    pub(crate) unit: &'static str,
}

impl Price {
    /// The price as quoted, for people.
    pub(crate) fn quoted(&self) -> String {
        let digits = format!("{:.2}", self.usd);
        let is_short = digits.parse() == Ok(self.usd);
        let digits = if is_short { digits } else { self.usd.to_string() };
        match self.per {
            1e6 => format!("${digits} / million"),
            per if per > 1.0 => format!("${digits} / {}", crate::terminal::numbers::count(per)),
            _ => format!("${digits} / {}", self.unit),
        }
    }
}

const fn page(name: &'static str, page: &'static str) -> Service {
    Service { name, page }
}

static SQS: Service = page("SQS", "https://aws.amazon.com/sqs/pricing/");
static LAMBDA: Service = page("Lambda", "https://aws.amazon.com/lambda/pricing/");
static CLOUDWATCH: Service = page("CloudWatch", "https://aws.amazon.com/cloudwatch/pricing/");
static S3: Service = page("S3", "https://aws.amazon.com/s3/pricing/");
static DYNAMODB: Service = page("DynamoDB", "https://aws.amazon.com/dynamodb/pricing/on-demand/");
static NETWORK: Service =
    page("network", "https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer");

const fn price(service: &'static Service, usd: f64, per: f64, unit: &'static str) -> Price {
    Price { service, usd, per, unit }
}

/// A request to a standard queue; each started 64 KiB of the payload counts as one.
pub(super) static SQS_REQUEST: Price = price(&SQS, 0.40, 1e6, "requests");
/// The surcharge for a request with a message group. Guides do not name the calls to which it
/// applies, so every call counts.
pub(super) static FAIR_REQUEST: Price = price(&SQS, 0.10, 1e6, "requests");
pub(super) static INVOCATION: Price = price(&LAMBDA, 0.20, 1e6, "invocations");
/// A second of 1 GB on arm64.
pub(super) static GB_SECOND: Price = price(&LAMBDA, 0.000_013_333_4, 1.0, "GB-s");
pub(super) static LOGS: Price = price(&CLOUDWATCH, 0.50, 1.0, "GB");
/// Logs stored for a month, uncompressed.
pub(super) static LOGS_KEPT: Price = price(&CLOUDWATCH, 0.03, 1.0, "GB-month");
/// A custom metric for a month: a name with one combination of dimensions.
pub(super) static METRIC: Price = price(&CLOUDWATCH, 0.30, 1.0, "metric-month");
pub(super) static ALARM: Price = price(&CLOUDWATCH, 0.10, 1.0, "alarm-month");
pub(super) static READ: Price = price(&S3, 0.000_4, 1e3, "reads");
pub(super) static WRITE: Price = price(&S3, 0.005, 1e3, "writes");
pub(super) static STORED: Price = price(&S3, 0.023, 1.0, "GB-month");
/// A tag of an object for a month.
pub(super) static TAG: Price = price(&S3, 0.01, 1e4, "tag-months");
/// A strongly consistent read of up to 4 KiB of an item. An eventually consistent read costs half.
pub(super) static TABLE_READ: Price = price(&DYNAMODB, 0.125, 1e6, "read units");
/// Data transfer to the internet.
pub(super) static DATA_OUT: Price = price(&NETWORK, 0.09, 1.0, "GB");
