//! Lists unit prices: list prices of us-east-1, in US dollars.
//!
//! Separate because prices change. Each price names the page of the service that sets it. The
//! numbers come from third parties, not from AWS; [`PRICES_FROM`] states their date.
//!
//! The list ignores free tiers, which belong to the account. It also ignores volume discounts,
//! which begin at 100 billion SQS requests, 7.5 billion GB-seconds and 10 TB of logs a month.

/// The source and the date of the prices, for people.
pub(crate) const PRICES_FROM: &str = "us-east-1 list prices from third-party sources up to June 2026, without free tier or volume discounts; see the JSON output for the page of each price";

/// An AWS service and the page that lists its prices.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) page: &'static str,
}

/// The price of `per` units of a service, in US dollars.
#[derive(Debug)]
pub(crate) struct Price {
    pub(crate) service: &'static Service,
    pub(crate) usd: f64,
    pub(crate) per: f64,
    pub(crate) unit: &'static str,
}

impl Price {
    /// Formats the price with its unit for people.
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

/// A request to a standard queue. SQS bills one request per 64 KiB of payload, rounded up.
pub(super) static SQS_REQUEST: Price = price(&SQS, 0.40, 1e6, "requests");
/// The surcharge for a request with a message group. Published guides name the surcharge, but not
/// the calls to which it applies, so the estimate adds it to every call.
pub(super) static FAIR_REQUEST: Price = price(&SQS, 0.10, 1e6, "requests");
pub(super) static INVOCATION: Price = price(&LAMBDA, 0.20, 1e6, "invocations");
/// A GB-second: one second of 1 GB of memory on arm64.
pub(super) static GB_SECOND: Price = price(&LAMBDA, 0.000_013_333_4, 1.0, "GB-s");
pub(super) static LOGS: Price = price(&CLOUDWATCH, 0.50, 1.0, "GB");
/// A GB of logs stored for a month, uncompressed.
pub(super) static LOGS_KEPT: Price = price(&CLOUDWATCH, 0.03, 1.0, "GB-month");
/// A custom metric for a month: a name with one combination of dimensions.
pub(super) static METRIC: Price = price(&CLOUDWATCH, 0.30, 1.0, "metric-month");
pub(super) static ALARM: Price = price(&CLOUDWATCH, 0.10, 1.0, "alarm-month");
pub(super) static READ: Price = price(&S3, 0.000_4, 1e3, "reads");
pub(super) static WRITE: Price = price(&S3, 0.005, 1e3, "writes");
pub(super) static STORED: Price = price(&S3, 0.023, 1.0, "GB-month");
/// A tag of an object, stored for a month.
pub(super) static TAG: Price = price(&S3, 0.01, 1e4, "tag-months");
/// A strongly consistent read of up to 4 KiB of an item. An eventually consistent read costs half.
pub(super) static TABLE_READ: Price = price(&DYNAMODB, 0.125, 1e6, "read units");
/// A GB transferred to the internet.
pub(super) static DATA_OUT: Price = price(&NETWORK, 0.09, 1.0, "GB");
