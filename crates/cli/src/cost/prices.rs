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
    /// The service that is billed.
    pub(crate) service: &'static str,
    /// The unit.
    pub(crate) unit: &'static str,
    /// The price of one unit in millionths of a millionth of a dollar.
    pub(crate) pico_dollars: u128,
    /// The number of units that the price is quoted for.
    pub(crate) quoted_for: u128,
    /// Whether the unit is one of things that are counted, such as requests, and not of an amount.
    pub(crate) is_counted: bool,
    /// The page that sets it.
    pub(crate) source: &'static str,
}

/// A service and the page that sets its prices.
struct Service(&'static str, &'static str);

const SQS: Service = Service("SQS", "https://aws.amazon.com/sqs/pricing/");
const LAMBDA: Service = Service("Lambda", "https://aws.amazon.com/lambda/pricing/");
const CLOUDWATCH: Service = Service("CloudWatch", "https://aws.amazon.com/cloudwatch/pricing/");
const S3: Service = Service("S3", "https://aws.amazon.com/s3/pricing/");
const DYNAMODB: Service = Service("DynamoDB", "https://aws.amazon.com/dynamodb/pricing/on-demand/");
const NETWORK: Service =
    Service("network", "https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer");
const VPC: Service = Service("NAT", "https://aws.amazon.com/vpc/pricing/");
const EVENTBRIDGE_PAGE: &str = "https://aws.amazon.com/eventbridge/pricing/";
const EVENTBRIDGE: Service = Service("EventBridge", EVENTBRIDGE_PAGE);
const SCHEDULER: Service = Service("Scheduler", EVENTBRIDGE_PAGE);
const SNS: Service = Service("SNS", "https://aws.amazon.com/sns/pricing/");
const AZURE: Service =
    Service("Event Grid", "https://azure.microsoft.com/pricing/details/event-grid/");

const GOOGLE: Service = Service("Pub/Sub", "https://cloud.google.com/pubsub/pricing");
const SVIX_PLANS: Service = Service("Svix", "https://www.svix.com/pricing/");

impl Service {
    /// The price of something that is counted, quoted for a million.
    const fn per_million(self, unit: &'static str, cents: u128) -> Price {
        self.quoted(unit, cents * (DOLLAR / 100), 1_000_000)
    }

    /// The price of something that is measured, quoted for one unit.
    const fn per_unit(self, unit: &'static str, pico_dollars: u128) -> Price {
        Price { is_counted: false, ..self.quoted(unit, pico_dollars, 1) }
    }

    /// The price of something that is counted.
    const fn quoted(self, unit: &'static str, pico_dollars: u128, quoted_for: u128) -> Price {
        let Self(service, source) = self;
        let pico_dollars = pico_dollars / quoted_for;
        Price { service, unit, pico_dollars, quoted_for, is_counted: true, source }
    }
}

/// A request to a standard queue; each 64 KiB of its payload is one.
pub(crate) const SQS_REQUEST: Price = SQS.per_million("requests", 40);
/// The surcharge of a request with a message group. Guides name the surcharge but not the calls that
/// it applies to; it is counted for each.
pub(crate) const FAIR_REQUEST: Price = SQS.per_million("requests", 10);
/// An invocation.
pub(crate) const INVOCATION: Price = LAMBDA.per_million("invocations", 20);
/// An hour of an event poller of a queue. AWS's example of the page has it for us-east-1, and a third party that read the
/// Price List API in September 2026 too.
pub(crate) const EVENT_POLLER: Price = LAMBDA.per_unit("EPU-hours", DOLLAR / 100_000 * 925);
/// A second of 1 GB on arm64.
pub(crate) const ARM64: Price = LAMBDA.per_unit("GB-s", 13_333_400);
/// A second of 1 GB on x86_64.
pub(crate) const X86_64: Price = LAMBDA.per_unit("GB-s", 16_666_700);
/// Ingested logs.
pub(crate) const LOGS: Price = CLOUDWATCH.per_unit("GB", DOLLAR / 2);
/// Logs stored for a month, not compressed.
pub(crate) const LOGS_KEPT: Price = CLOUDWATCH.per_unit("GB-months", DOLLAR / 100 * 3);
/// A custom metric: a name with one combination of dimensions, a month.
pub(crate) const METRIC: Price = CLOUDWATCH.per_unit("metric-months", DOLLAR / 10 * 3);
/// An alarm on one metric, a month.
pub(crate) const ALARM: Price = CLOUDWATCH.per_unit("alarm-months", DOLLAR / 10);
/// Reading an object.
pub(crate) const GET: Price = S3.quoted("reads", DOLLAR / 2_500, 1_000);
/// Writing an object.
pub(crate) const PUT: Price = S3.quoted("writes", DOLLAR / 200, 1_000);
/// A tag of an object, a month.
pub(crate) const TAG: Price = S3.quoted("tag-months", DOLLAR / 100, 10_000);
/// Reading up to 4 KiB of an item. What need not be the newest costs half.
pub(crate) const TABLE_READ: Price = DYNAMODB.quoted("read units", DOLLAR / 8, 1_000_000);
/// Writing up to 1 KiB of an item.
pub(crate) const TABLE_WRITE: Price = DYNAMODB.quoted("write units", DOLLAR / 8 * 5, 1_000_000);
/// Objects stored for a month.
pub(crate) const STORED: Price = S3.per_unit("GB-months", DOLLAR / 1_000 * 23);
/// Data that leaves for the internet.
pub(crate) const DATA_OUT: Price = NETWORK.per_unit("GB", DOLLAR / 100 * 9);

/// An hour of a NAT gateway, and what it passes on in either direction.
pub(crate) const NAT_HOUR: Price = VPC.per_unit("hours", DOLLAR / 1_000 * 45);
pub(crate) const NAT_DATA: Price = VPC.per_unit("GB", DOLLAR / 1_000 * 45);

/// An event on a bus, and its delivery by an API destination.
pub(crate) const EVENT_BUS: Price = EVENTBRIDGE.per_million("events", 100);
pub(crate) const API_DESTINATION: Price = EVENTBRIDGE.per_million("attempts", 20);
/// A schedule that runs once.
pub(crate) const SCHEDULE: Price = SCHEDULER.per_million("schedules", 100);
/// A publication, and its delivery to an HTTP endpoint.
pub(crate) const SNS_PUBLISH: Price = SNS.per_million("events", 50);
pub(crate) const SNS_HTTP: Price = SNS.per_million("attempts", 60);
/// An operation of Event Grid's basic tier: a publication or an attempt.
pub(crate) const EVENT_GRID: Price = AZURE.per_million("operations", 60);

/// A GiB that is published or delivered: $40 a TiB.
pub(crate) const PUB_SUB: Price = GOOGLE.per_unit("GiB", DOLLAR * 40 / 1_024);
/// A message to an endpoint, beyond those of a plan, whose price per month is not included.
pub(crate) const SVIX: Price = SVIX_PLANS.per_million("messages", 10_000);

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
            10_000 => format!("${digits} / 10,000"),
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
