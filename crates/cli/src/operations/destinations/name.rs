//! Parses the name of a destination: the name of a subscription that delivers to it, its address,
//! or its key.

use std::fmt;
use std::str::FromStr;

use delivery::delivery::health::DestinationKey;
use delivery::subscription;
use delivery::subscription::aws::TargetArn;
use delivery::subscription::name::SubscriptionName;
use url::Url;

/// A reference to a destination on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    Subscription(SubscriptionName),
    /// The address of the destination: either complete, or in the shorter form that `list` shows,
    /// which has no credentials and no query.
    Address(Url),
    /// The key of the destination in the table, as `list` shows it.
    Key(DestinationKey),
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(key) = text.parse() {
            return Ok(Self::Key(key));
        }
        // `destinations list` shows the ARN of an AWS target as its address, and the other commands
        // accept every address that it shows.
        if let Ok(arn) = text.parse::<TargetArn>() {
            return Ok(Self::Address(arn.address().clone()));
        }
        // The name of a subscription has no empty part, so it never contains `://`.
        if text.contains("://") {
            let url = text
                .parse::<Url>()
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            return url.map(Self::Address).ok_or_else(|| {
                "expected an HTTP address, such as https://billing.example.com/events".to_owned()
            });
        }
        text.parse().map(Self::Subscription).map_err(|_| {
            "expected a subscription (namespace/topic/name) or an address (https://… or arn:…)"
                .to_owned()
        })
    }
}

/// Formats an address without its query, which may contain secrets.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscription(name) => name.fmt(f),
            Self::Address(url) => f.write_str(&subscription::display(url)),
            Self::Key(key) => key.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_subscription_an_address_or_a_key() {
        assert!(matches!("shop/orders/billing".parse(), Ok(Name::Subscription(_))));
        assert!(matches!("https://a.example.com/x?code=1".parse(), Ok(Name::Address(_))));
        for arn in ["sqs:eu-west-1:123456789012:a", "events:eu-west-1:123456789012:event-bus/a/b"] {
            let name = format!("arn:aws:{arn}").parse().map(|name: Name| name.to_string());
            assert_eq!(name, Ok(format!("arn:aws:{arn}")));
        }
        let url = "https://a.example.com/x".parse().expect("an address");
        let key = DestinationKey::new("shop", &url);
        assert_eq!(key.to_string().parse(), Ok(Name::Key(key)));
        for wrong in ["billing", "shop/orders", "ftp://a.example.com/", "https://", ""] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
        }
        let shown =
            "https://u:p@a.example.com/x?code=1#f".parse::<Name>().map(|name| name.to_string());
        assert_eq!(shown.as_deref(), Ok("https://a.example.com/x"));
    }
}
