//! The endpoint of a subscription and what is sent to it.

use serde::{Deserialize, Serialize};

use super::auth::AuthV1;
use super::field::{address_or_topic, at_least_one, of_field};
use super::words::{DisabledV1, SchemaV1};
use crate::document::record::NoFields;
use crate::subscription::header::{self, Header, Value};
use crate::subscription::public_key::PublicKey;
use crate::subscription::secret::SecretName;
use crate::subscription::tls::CaBundle;
use crate::subscription::{
    CloudEventsHandshake, Concurrency, Consent, Destination, Disable, Signing, Tls,
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DestinationV1 {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hide_path: bool,
    response_timeout_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<SchemaV1>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    plain_json: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<HeaderV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth: Option<AuthV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_bundle: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    signing: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    public_keys: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    notification_headers: bool,
    max_concurrency: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shares_concurrency: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_per_second: Option<u32>,
    slow_after_ms: u64,
    late_response_window_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    probation: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable: Option<DisableV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consent: Option<ConsentV1>,
}

/// One of the four has the value.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderV1 {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concealed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DisableV1 {
    after_ms: u64,
    then: DisabledV1,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "handshake", rename_all = "lowercase", deny_unknown_fields)]
enum ConsentV1 {
    // With braces: serde ignores unknown fields beside a tag that has none.
    EventGrid {},
    CloudEvents {
        origin: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<u32>,
    },
}

impl From<&Destination> for DestinationV1 {
    fn from(destination: &Destination) -> Self {
        let Destination {
            url,
            reference,
            hide_path,
            response_timeout_ms,
            schema,
            plain_json,
            headers,
            auth,
            tls,
            signing: _,
            notification_headers,
            max_concurrency,
            max_per_second,
            slow_after_ms,
            late_window_ms,
            probation,
            disable,
            consent,
        } = destination;
        Self {
            url: url.to_string(),
            reference: reference.clone(),
            hide_path: *hide_path,
            response_timeout_ms: *response_timeout_ms,
            schema: schema.map(SchemaV1),
            plain_json: *plain_json,
            headers: headers.iter().map(HeaderV1::from).collect(),
            auth: auth.as_ref().map(AuthV1::from),
            ca_bundle: tls.as_ref().map(|of| of.ca_bundle.pem().to_owned()),
            signing: destination.signing_secrets().iter().map(ToString::to_string).collect(),
            public_keys: destination.public_keys().iter().map(ToString::to_string).collect(),
            notification_headers: *notification_headers,
            max_concurrency: max_concurrency.most,
            shares_concurrency: max_concurrency.is_shared,
            max_per_second: *max_per_second,
            slow_after_ms: *slow_after_ms,
            late_response_window_ms: *late_window_ms,
            probation: *probation,
            disable: disable
                .map(|Disable { after_ms, then }| DisableV1 { after_ms, then: DisabledV1(then) }),
            consent: consent.as_ref().map(ConsentV1::from),
        }
    }
}

impl DestinationV1 {
    pub(super) fn into_destination(self) -> Result<Destination, String> {
        let signing = self.signing.iter().map(|name| name.parse()).collect();
        let secrets: Vec<SecretName> = of_field("destination.signing", signing)?;
        let public_keys = self.public_keys.iter().map(|key| key.parse()).collect();
        let public_keys: Vec<PublicKey> = of_field("destination.publicKeys", public_keys)?;
        let public_keys = Some(public_keys).filter(|keys| !keys.is_empty());
        let per_second = |most| at_least_one("destination.maxPerSecond", most);
        Ok(Destination {
            url: address_or_topic("destination.url", &self.url)?,
            reference: self.reference,
            hide_path: self.hide_path,
            response_timeout_ms: self.response_timeout_ms,
            schema: self.schema.map(|SchemaV1(schema)| schema),
            plain_json: self.plain_json,
            headers: self
                .headers
                .into_iter()
                .map(HeaderV1::into_header)
                .collect::<Result<_, _>>()?,
            auth: self.auth.map(AuthV1::into_auth).transpose()?,
            tls: self.ca_bundle.map(ca_bundle).transpose()?.map(|ca_bundle| Tls { ca_bundle }),
            signing: (!secrets.is_empty()).then_some(Signing { secrets, public_keys }),
            notification_headers: self.notification_headers,
            max_concurrency: Concurrency {
                most: at_least_one("destination.maxConcurrency", self.max_concurrency)?,
                is_shared: self.shares_concurrency,
            },
            max_per_second: self.max_per_second.map(per_second).transpose()?,
            slow_after_ms: self.slow_after_ms,
            late_window_ms: self.late_response_window_ms,
            probation: self.probation,
            disable: self
                .disable
                .map(|DisableV1 { after_ms, then: DisabledV1(then) }| Disable { after_ms, then }),
            consent: self.consent.map(ConsentV1::into_consent).transpose()?,
        })
    }
}

fn ca_bundle(pem: String) -> Result<CaBundle, String> {
    of_field("destination.caBundle", CaBundle::new(&pem))
}

impl From<&Header> for HeaderV1 {
    fn from(Header { name, value }: &Header) -> Self {
        let named = Self { name: name.clone(), ..Self::default() };
        match value {
            Value::Static(value) => Self { value: Some(value.clone()), ..named },
            Value::Concealed(value) => Self { concealed: Some(value.clone()), ..named },
            Value::Path(path) => Self { path: Some(path.to_string()), ..named },
            Value::Secret(secret) => Self { secret: Some(secret.to_string()), ..named },
        }
    }
}

impl HeaderV1 {
    fn into_header(self) -> Result<Header, String> {
        let Self { name, value, concealed, path, secret } = self;
        if !header::is_name(&name) {
            return Err(format!("destination.headers: {name:?} is not the name of a header"));
        }
        let checked = |value: String| header::check_value(&value).map(|()| value);
        let value = match (value, concealed, path, secret) {
            (Some(value), None, None, None) => checked(value).map(Value::Static),
            (None, Some(value), None, None) => checked(value).map(Value::Concealed),
            (None, None, Some(path), None) => path.parse().map(Value::Path),
            (None, None, None, Some(secret)) => secret.parse().map(Value::Secret),
            (_, _, _, _) => Err("one of value, concealed, path and secret is expected".to_owned()),
        };
        Ok(Header { value: of_field(&format!("destination.headers, {name}"), value)?, name })
    }
}

impl From<&Consent> for ConsentV1 {
    fn from(consent: &Consent) -> Self {
        match consent {
            Consent::EventGrid(NoFields) => Self::EventGrid {},
            Consent::CloudEvents(CloudEventsHandshake { origin, rate }) => {
                Self::CloudEvents { origin: origin.clone(), rate: *rate }
            }
        }
    }
}

impl ConsentV1 {
    fn into_consent(self) -> Result<Consent, String> {
        match self {
            Self::EventGrid {} => Ok(Consent::EventGrid(NoFields)),
            Self::CloudEvents { origin, rate } => {
                // It is sent as a header.
                of_field("destination.consent.origin", header::check_value(&origin))?;
                let at_least_one = |rate| at_least_one("destination.consent.rate", rate);
                Ok(Consent::CloudEvents(CloudEventsHandshake {
                    origin,
                    rate: rate.map(at_least_one).transpose()?,
                }))
            }
        }
    }
}
