//! Any subscription and any topic is kept. Each strategy names every field, so that a new one is missed here.

use delivery::subscription::CloudEventsHandshake;
use delivery::subscription::NoFields;
use delivery::subscription::auth::Basic;
use delivery::subscription::auth::Bearer;
use delivery::subscription::auth::ClientCertificate;
use delivery::subscription::auth::SecretHeader;
use std::sync::Arc;

use delivery::event::Input;
use delivery::event::mapping::{Field, Mapping};
use delivery::event::path::Path;
use delivery::event::schema::Schema;
use delivery::subscription::auth::identity::{WebIdentity, check_audience};
use delivery::subscription::auth::oauth2::{
    ClientCredentials, Style, check_parameter, check_parameter_name,
};
use delivery::subscription::auth::sigv4::{SigningScope, SigningService};
use delivery::subscription::auth::{Auth, check_user};
use delivery::subscription::catalogue::Topic;
use delivery::subscription::dead_letter_format::{
    DeadLetterFormat, ErrorData, Format, Layout, Response,
};
use delivery::subscription::filter::Filter;
use delivery::subscription::filter::advanced::{Condition, NumberTest, Test, TextTest};
use delivery::subscription::filter::key::Key;
use delivery::subscription::filter::number::Number;
use delivery::subscription::header::{Header, Value, check_value};
use delivery::subscription::name::TopicName;
use delivery::subscription::profile::{Dialect, RetryPolicy, StatusSet};
use delivery::subscription::public_key::PublicKey;
use delivery::subscription::schedule::{Kind, Schedule};
use delivery::subscription::secret::SecretName;
use delivery::subscription::sink::Sink;
use delivery::subscription::tls::CaBundle;
use delivery::subscription::topic_address::address_of;
use delivery::subscription::topic_settings::TopicSettings;
use delivery::subscription::{
    Batch, Consent, DeadLetterPolicy, Destination, Disable, Disabled, OnRefused, ReplyTo,
    Subscription,
};
use delivery::subscription::{Concurrency, Signing, Tls};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use url::Url;

use super::{assert_subscription_is_kept, assert_topic_is_kept};
use crate::{arbitrary, matching};

fn url() -> impl Strategy<Value = Url> {
    let text = r"https?://(u:p@)?[a-z]{1,9}\.example(:[0-9]{2,4})?(/[a-z%20ö'\\ ]{0,9}){0,2}(\?[a-z=&ü]{0,9})?(#x)?";
    text.prop_filter_map("an address", |text| Url::parse(&text).ok())
}

/// An address that requests are made to, or a topic that events go on to.
fn recipient() -> impl Strategy<Value = Url> {
    prop_oneof![9 => url(), 1 => topic_name().prop_map(|name| address_of(&name))]
}

fn topic_name() -> impl Strategy<Value = TopicName> {
    arbitrary::name().prop_map(|name| name.topic)
}

fn path() -> impl Strategy<Value = Path> {
    let quoted = |name: String| name.replace('\\', r"\\").replace('\'', r"\'");
    let index = option::of(any::<usize>());
    ("\\PC{0,9}", "[a-z]{1,5}", index).prop_map(move |(first, second, index)| {
        let index = index.map(|index| format!("[{index}]")).unwrap_or_default();
        format!("$['{}'].{second}{index}", quoted(first)).parse().expect("a path")
    })
}

/// The public keys of RFC 8037, appendix A, and of RFC 8032, 7.1, test 2.
const PUBLIC_KEYS: [&str; 2] = [
    "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
    "whpk_PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=",
];

fn secret() -> impl Strategy<Value = SecretName> {
    let text = "(env:[B-Z_]{1,9}|ssm:/[a-z/]{1,9}|secretsmanager:[a-z/]{1,9}(#[a-z]{1,5})?)";
    text.prop_map(|text| text.parse().expect("the name of a secret"))
}

fn header() -> impl Strategy<Value = Header> {
    let text = || "\\PC{0,30}".prop_filter("a value", |text| check_value(text).is_ok());
    let value = prop_oneof![
        text().prop_map(Value::Static),
        text().prop_map(Value::Concealed),
        path().prop_map(Value::Path),
        secret().prop_map(Value::Secret),
    ];
    ("[A-Za-z!#$%&'*+.^_`|~-]{1,12}", value).prop_map(|(name, value)| Header { name, value })
}

fn client() -> impl Strategy<Value = ClientCredentials> {
    let text = || "\\PC{1,9}".prop_filter("a value", |text| check_parameter(text).is_ok());
    let name = "\\PC{1,9}".prop_filter("a name", |text| check_parameter_name(text).is_ok());
    let optional = || option::of(text());
    (
        (url(), text(), secret(), select(&Style::ALL[..])),
        (optional(), optional(), optional(), vec((name, text()), 0..3)),
    )
        .prop_map(|((token_url, client_id, client_secret, style), rest)| {
            let (scope, audience, resource, parameters) = rest;
            ClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope,
                audience,
                resource,
                style,
                parameters,
            }
        })
}

fn auth() -> impl Strategy<Value = Auth> {
    let user = "\\PC{1,9}".prop_filter("a user", |user| check_user(user).is_ok());
    prop_oneof![
        (user, secret()).prop_map(|(user, password)| Auth::Basic(Basic { user, password })),
        secret().prop_map(|token| Auth::Bearer(Bearer { token })),
        (secret(), secret()).prop_map(|(certificate, key)| Auth::ClientCertificate(
            ClientCertificate { certificate, key }
        )),
        client().prop_map(|client| Auth::OAuth2(Box::new(client))),
        (select(&SigningService::ALL[..]), "[a-z][a-z0-9]{0,9}(-[a-z0-9]{1,9}){0,2}")
            .prop_map(|(service, region)| Auth::Sigv4(SigningScope { service, region })),
        (
            "\\PC{1,9}".prop_filter("an audience", |text| check_audience(text).is_ok()),
            60..=3_600_u64
        )
            .prop_map(|(audience, seconds)| Auth::AwsIdentity(WebIdentity {
                audience,
                lifetime_ms: seconds * 1_000,
            })),
        ("[A-Za-z-]{1,9}", secret())
            .prop_map(|(name, value)| Auth::Header(SecretHeader { name, value })),
    ]
}

fn ca_bundle() -> impl Strategy<Value = CaBundle> {
    let pem =
        "([ -,.-~]{0,9}\n-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n){1,3}";
    pem.prop_map(|pem| CaBundle::new(&pem).expect("certificates"))
}

fn consent() -> impl Strategy<Value = Consent> {
    let cloud_events = ("[a-z.]{1,20}", option::of(1..=u32::MAX))
        .prop_map(|(origin, rate)| Consent::CloudEvents(CloudEventsHandshake { origin, rate }));
    prop_oneof![Just(Consent::EventGrid(NoFields)), cloud_events]
}

fn destination() -> impl Strategy<Value = Destination> {
    let disable = (any::<u64>(), select(&Disabled::ALL[..]));
    let disable = disable.prop_map(|(after_ms, then)| Disable { after_ms, then });
    let signing = (vec(secret(), 0..3), vec(select(&PUBLIC_KEYS[..]), 0..3));
    (
        (recipient(), any::<[bool; 5]>(), any::<[u64; 3]>(), option::of(select(&Schema::ALL[..]))),
        (vec(header(), 0..4), option::of(auth()), option::of(ca_bundle()), signing),
        (option::of(disable), option::of(consent())),
        (1..=u32::MAX, option::of(1..=u32::MAX)),
    )
        .prop_map(
            |(first, (headers, auth, ca_bundle, signing), (disable, consent), limits)| {
                let (secrets, public_keys) = signing;
                let public_keys: Vec<PublicKey> =
                    public_keys.into_iter().map(|key| key.parse().expect("a public key")).collect();
                let public_keys = Some(public_keys).filter(|keys| !keys.is_empty());
                let signing = (!secrets.is_empty()).then_some(Signing { secrets, public_keys });
                let (url, flags, [response_timeout_ms, slow_after_ms, late_window_ms], schema) =
                    first;
                let [hide_path, plain_json, notification_headers, is_shared, probation] = flags;
                let (most, max_per_second) = limits;
                Destination {
                    reference: hide_path.then(|| "crm".to_owned()),
                    url,
                    hide_path,
                    response_timeout_ms,
                    schema,
                    plain_json,
                    headers,
                    auth,
                    tls: ca_bundle.map(|ca_bundle| Tls { ca_bundle }),
                    signing,
                    notification_headers,
                    max_concurrency: Concurrency { most, is_shared },
                    max_per_second,
                    slow_after_ms,
                    late_window_ms,
                    probation,
                    disable,
                    consent,
                }
            },
        )
}

fn number() -> impl Strategy<Value = Number> {
    let spelling = r"-?[0-9]{1,30}(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,25})?";
    spelling.prop_map(|text| Number::parse(&text).expect("a number"))
}

fn number_test() -> impl Strategy<Value = NumberTest> {
    prop_oneof![
        vec(number(), 0..3).prop_map(NumberTest::In),
        number().prop_map(NumberTest::LessThan),
        number().prop_map(NumberTest::LessThanOrEquals),
        number().prop_map(NumberTest::GreaterThan),
        number().prop_map(NumberTest::GreaterThanOrEquals),
        vec((number(), number()), 0..3).prop_map(NumberTest::InRange),
    ]
}

/// Any test of any key; those of `matching` have few values.
fn condition() -> impl Strategy<Value = Filter> {
    let text = (select(&matching::MATCHES[..]), vec(any::<String>(), 0..3));
    let text = text.prop_map(|(how, values)| TextTest::new(how, &values));
    let test = prop_oneof![
        number_test().prop_map(Test::Number),
        number_test().prop_map(Test::NotNumber),
        text.clone().prop_map(Test::Text),
        text.prop_map(Test::NotText),
    ];
    let key = any::<String>().prop_filter_map("a key", |text| Key::parse(&text));
    (key, test, select(&matching::ARRAYS[..]))
        .prop_map(|(key, test, arrays)| Filter::Advanced(Condition { key, test, arrays }))
}

fn filter() -> impl Strategy<Value = Filter> {
    prop_oneof![
        Just(Filter::EVERYTHING),
        matching::filter(),
        vec(condition(), 1..3).prop_map(Filter::All),
    ]
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let kind = prop_oneof![
        any::<u64>().prop_map(|delay_ms| Kind::Linear { delay_ms }),
        any::<u64>().prop_map(|delay_ms| Kind::Exponential { delay_ms }),
        any::<u64>().prop_map(|delay_ms| Kind::LinearFromZero { delay_ms }),
        any::<u64>().prop_map(|delay_ms| Kind::ExponentialFromZero { delay_ms }),
        any::<u64>().prop_map(|delay_ms| Kind::Constant { delay_ms }),
        vec(any::<u64>(), 1..9).prop_map(|waits_ms| Kind::Waits { waits_ms: waits_ms.into() }),
        btree_set(any::<u64>(), 1..9)
            .prop_map(|moments_ms| Kind::Moments { moments_ms: moments_ms.into_iter().collect() }),
    ];
    (kind, option::of(any::<u64>())).prop_map(|(kind, max_ms)| Schedule { kind, max_ms })
}

fn statuses() -> impl Strategy<Value = StatusSet> {
    let range = (any::<u16>(), 0..300_u16);
    let range = range.prop_map(|(first, more)| first..=first.saturating_add(more));
    vec(range, 0..5).prop_map(StatusSet::new)
}

fn retry() -> impl Strategy<Value = RetryPolicy> {
    let waits = (vec(any::<(u16, u64)>(), 0..4), any::<u64>());
    (
        (1..=u32::MAX, option::of(any::<u64>()), schedule(), any::<u32>()),
        (statuses(), statuses(), statuses(), waits, any::<u64>(), any::<bool>()),
    )
        .prop_map(|((max_attempts, time_to_live_ms, schedule, jitter_percent), judged)| {
            let (success, never_retry, retry_on, waits, retry_after_max_ms, names_the_limit) =
                judged;
            let (least_waits, otherwise_least_wait_ms) = waits;
            RetryPolicy {
                max_attempts,
                time_to_live_ms,
                schedule,
                jitter_percent,
                success,
                never_retry,
                retry_on,
                least_waits,
                otherwise_least_wait_ms,
                retry_after_max_ms,
                last_attempt_names_the_limit: names_the_limit,
            }
        })
}

fn sink() -> impl Strategy<Value = Sink> {
    let container = "[a-z0-9.-]{3,20}(/[a-zö ]{1,9}){0,2}";
    let queue =
        r"(sqs\.[a-z0-9-]{1,9}\.amazonaws\.com|127\.0\.0\.1:4566)/[0-9]{12}/[A-Za-z0-9_-]{1,80}";
    prop_oneof![
        Just(Sink::DefaultContainer),
        container.prop_map(|text| Sink::Container(text.parse().expect("a container"))),
        queue.prop_map(|text| Sink::Queue(text.parse().expect("a queue"))),
        url().prop_map(Sink::Address),
        topic_name().prop_map(Sink::Topic),
        Just(Sink::None),
    ]
}

fn dead_letter() -> impl Strategy<Value = DeadLetterPolicy> {
    let format = prop_oneof![
        select(&Format::ALL[..]).prop_map(DeadLetterFormat::Fixed),
        Just(DeadLetterFormat::ByDeliverySchema),
    ];
    let words = (select(&Layout::ALL[..]), select(&ErrorData::ALL[..]), select(&Response::ALL[..]));
    ((sink(), any::<bool>()), format, words, (1..=u32::MAX, any::<u64>(), any::<u64>())).prop_map(
        |((sink, hide_path), format, (layout, error_data, response), numbers)| {
            let (events_per_blob, delay_ms, keep_trying_for_ms) = numbers;
            DeadLetterPolicy {
                reference: hide_path.then(|| "letters".to_owned()),
                sink,
                hide_path,
                format,
                layout,
                error_data,
                response,
                events_per_blob,
                delay_ms,
                keep_trying_for_ms,
            }
        },
    )
}

fn batch() -> impl Strategy<Value = Batch> {
    (1..=u32::MAX, any::<u64>(), select(&OnRefused::ALL[..])).prop_map(
        |(max_events, preferred_bytes, on_refused)| Batch {
            max_events,
            preferred_bytes,
            on_refused,
        },
    )
}

fn mapping() -> impl Strategy<Value = Arc<Mapping>> {
    let field = || {
        (option::of(path()), option::of(any::<String>()))
            .prop_map(|(path, default)| Field { path, default })
    };
    let fields = (field(), field(), field(), field(), field(), field());
    let full = fields.prop_map(|(id, topic, event_time, event_type, subject, data_version)| {
        Arc::new(Mapping { id, topic, event_time, event_type, subject, data_version })
    });
    prop_oneof![Just(Arc::default()), full]
}

fn subscription() -> impl Strategy<Value = Subscription> {
    let reply =
        prop_oneof![url().prop_map(ReplyTo::Address), topic_name().prop_map(ReplyTo::Topic),];
    let about = (arbitrary::name(), select(&Dialect::ALL[..]), mapping(), filter());
    let policy = (destination(), retry(), option::of(batch()), dead_letter());
    (about, policy, (any::<bool>(), option::of(reply), option::of(any::<u64>()))).prop_map(
        |((name, dialect, mapping, filter), policy, (paused, reply, expires_ms))| {
            let (destination, retry, batch, dead_letter) = policy;
            Subscription {
                name,
                dialect,
                destination,
                mapping,
                filter,
                retry,
                batch,
                dead_letter,
                paused,
                reply_reference: paused.then(|| "replies".to_owned()),
                reply,
                expires_ms,
            }
        },
    )
}

proptest! {
    #[test]
    fn any_subscription_is_kept(subscription in subscription()) {
        assert_subscription_is_kept(&subscription);
    }

    #[test]
    fn any_topic_is_kept(
        name in topic_name(),
        input in select(&Input::ALL[..]),
        mapping in mapping(),
        max_replies in any::<u32>(),
    ) {
        assert_topic_is_kept(&Topic { name, settings: TopicSettings { input, mapping, from: Vec::new(), max_replies } });
    }
}

#[test]
fn text_in_lower_case_stays_as_it_is() {
    for character in '\0'..=char::MAX {
        let lower = character.to_string().to_lowercase();
        assert_eq!(lower.to_lowercase(), lower, "{character:?}");
    }
}
