//! The form of a `Destinations` entry that has other settings in addition to an address.
//!
//! Separate because the entry may omit token settings that are in the file that uses the
//! destination.

use delivery::document::kind::{DEFINITION, Integer, Kind, OneOf, Whole, of_mapping};
use delivery::document::reader::Cursor;
use delivery::document::record::{Optional, Record as _};
use delivery::subscription::Tls;
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::oauth2::ClientCredentials;
use delivery::subscription::concurrency::{Concurrencies, Concurrency};
use delivery::subscription::kinds::address::ADDRESS_PATTERN;
use delivery::subscription::kinds::limits;
use serde_json::{Value as Json, json};

use delivery::document::node::Node;

delivery::record! {
    /// The address and the settings of a destination.
    #[derive(Clone, Default)]
    pub(crate) struct DestinationEntry {
        /// Address of the destination. Without a URL, the key is the address.
        "url" => pub(crate) url: Option<String> = Optional(Written, "the key"),
        /// Authentication of requests. Token settings in the file that names the destination need
        /// not be repeated here.
        "auth" => pub(crate) auth: Option<Supplied> = Optional(SuppliedAuth, "none"),
        /// Additional certificate authorities to trust when the certificate of the destination is
        /// verified.
        "tls" => pub(crate) tls: Option<Tls> = Optional(Whole::<Tls>::KIND, "none"),
        /// Maximum number of concurrent requests of all functions and all subscriptions together.
        "maxConcurrency" => pub(crate) max_concurrency: Option<Concurrency> = Optional(Concurrencies, "50 for each function"),
        /// Maximum average number of requests per second of all functions and all subscriptions
        /// together.
        "maxPerSecond" => pub(crate) max_per_second: Option<u32> = Optional(Integer(limits::PER_SECOND), "no limit"),
    }
}

/// Parser of an address. The address is kept as written, and resolved by [`super::destinations`].
struct Written;

impl Kind for Written {
    type Value = String;

    fn read(&self, at: &Cursor<'_>) -> Option<String> {
        at.text().map(str::to_owned)
    }

    fn write(&self, value: &String) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": ADDRESS_PATTERN })
    }
}

/// The field `auth` of an entry of a `Destinations` document.
#[derive(Clone)]
pub(crate) enum Supplied {
    /// Complete authentication, which needs no values from a file.
    Whole(Auth),
    /// A client with possibly missing values. The file that uses the destination may state them.
    Client(Client),
}

/// The credentials of a client. The file that uses the destination may state missing values.
#[derive(Clone)]
pub(crate) struct Client {
    /// The values in the entry. Missing values have defaults.
    pub(crate) credentials: ClientCredentials,
    /// True if the entry states the token server.
    pub(crate) has_token_url: bool,
    /// True if the entry states how the secret is sent.
    pub(crate) has_style: bool,
}

/// Parser of the field `auth` of an entry.
struct SuppliedAuth;

impl Kind for SuppliedAuth {
    type Value = Supplied;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<Supplied> {
        let client = at.peek("oauth2").filter(|_| at.entries().is_some_and(|all| all.len() == 1));
        let Some(at) = client else { return OneOf::<Auth>::KIND.read(at).map(Supplied::Whole) };
        let elsewhere = Node::of_json(&json!({ "tokenUrl": "https://token.invalid/" }));
        let credentials = at.mapping_over(&[at.beside(&elsewhere)], ClientCredentials::read)??;
        let [has_token_url, has_style] =
            ["tokenUrl", "style"].map(|field| at.peek(field).is_some());
        Some(Supplied::Client(Client { credentials, has_token_url, has_style }))
    }

    fn write(&self, value: &Supplied) -> Json {
        match value {
            Supplied::Whole(auth) => OneOf::<Auth>::KIND.write(auth),
            Supplied::Client(Client { credentials, has_token_url, has_style }) => {
                let mut fields = credentials.write();
                let is_known = |name: &str| match name {
                    "tokenUrl" => *has_token_url,
                    "style" => *has_style,
                    _ => true,
                };
                fields.retain(|name, _| is_known(name));
                json!({ "oauth2": fields })
            }
        }
    }

    fn schema(&self) -> Json {
        let mut fields = ClientCredentials::declarations();
        fields.retain(|field| field.name != "tokenUrl");
        fields.iter_mut().filter(|field| field.name == "style").for_each(|field| {
            // Omit the default, because the file that uses the destination may state the style.
            field.default = None;
        });
        let about = "Client credentials without a token server, which the file that names the destination states.";
        let mut client = of_mapping("Client", &[about], fields);
        client[DEFINITION] = json!("Client");
        json!({ "anyOf": [OneOf::<Auth>::KIND.schema(), {
            "type": "object",
            "additionalProperties": false,
            "required": ["oauth2"],
            "properties": [["oauth2", client]],
        }] })
    }
}
