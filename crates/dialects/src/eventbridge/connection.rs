//! Reads connections: the authentication of requests, and the parameters that are added to each
//! request.
//!
//! Separate because a connection may have several destinations.

use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::auth::oauth2::NAMED_PARAMETERS;
use serde_json::{Map, Value as Json, json};

use super::literal::{literal, section};
use super::secrets::Secrets;
use super::template_text::constant;

/// The contents of a connection: the authentication of requests, and the parameters that are added
/// to each request.
#[derive(Default)]
pub(super) struct Connection<'a> {
    /// The native form of `auth`, with the position of the field that states it.
    pub(super) auth: Option<(Json, Cursor<'a>)>,
    pub(super) headers: Vec<Parameter<'a>>,
    pub(super) query: Vec<Parameter<'a>>,
    pub(super) body: Vec<Parameter<'a>>,
}

/// A parameter of `InvocationHttpParameters`.
pub(super) struct Parameter<'a> {
    pub(super) name: &'a str,
    pub(super) value: Value<'a>,
    pub(super) at: Cursor<'a>,
}

pub(super) enum Value<'a> {
    Stated(&'a str),
    /// The name of the secret that contains the value.
    Secret(String),
}

impl Parameter<'_> {
    /// Returns the value as a template that produces text.
    pub(super) fn text(&self) -> String {
        match &self.value {
            Value::Stated(text) => constant(text, false),
            Value::Secret(name) => format!("{{{{ secret({}) }}}}", json!(name)),
        }
    }

    /// Returns the value as a template that produces JSON.
    pub(super) fn json(&self) -> String {
        match &self.value {
            Value::Stated(text) => constant(&json!(text).to_string(), false),
            Value::Secret(name) => format!("{{{{ secret({}) | tojson }}}}", json!(name)),
        }
    }
}

/// Fields of a connection that do not affect requests.
const IGNORED_FIELDS: [&str; 11] = [
    "ConnectionArn",
    "ConnectionState",
    "CreationTime",
    "Description",
    "KmsKeyIdentifier",
    "LastAuthorizedTime",
    "LastModifiedTime",
    "Name",
    "SecretArn",
    "StateReason",
    "Tags",
];

pub(super) fn read<'a>(fields: &Fields<'a>, secrets: &Secrets<'_>) -> Option<Connection<'a>> {
    fields.accept(&IGNORED_FIELDS);
    fields.given("InvocationConnectivityParameters").iter().for_each(report_private);
    let kind = fields.required("AuthorizationType")?;
    let at = fields.required("AuthParameters")?;
    at.mapping(|auth_fields| {
        auth_fields.given("ConnectivityParameters").iter().for_each(report_private);
        let mut connection =
            Connection { auth: auth(auth_fields, &kind, secrets), ..Connection::default() };
        if let Some(added) = section(auth_fields, "InvocationHttpParameters")? {
            added.mapping(|added_fields| {
                connection.headers = parameters(added_fields, "HeaderParameters", secrets)?;
                connection.query = parameters(added_fields, "QueryStringParameters", secrets)?;
                connection.body = parameters(added_fields, "BodyParameters", secrets)?;
                Some(())
            })??;
        }
        connection.auth.is_some().then_some(connection)
    })?
}

fn report_private(at: &Cursor<'_>) {
    let message = "resource configurations of VPC Lattice for private endpoints are not supported";
    at.warn(
        Message::new(message).help("run dispatch in a VPC from which the endpoint is reachable"),
    );
}

fn auth<'a>(
    fields: &Fields<'a>,
    kind: &Cursor<'a>,
    secrets: &Secrets<'_>,
) -> Option<(Json, Cursor<'a>)> {
    let field = match literal(kind)? {
        "API_KEY" => "ApiKeyAuthParameters",
        "BASIC" => "BasicAuthParameters",
        "OAUTH_CLIENT_CREDENTIALS" => "OAuthParameters",
        _ => return kind.refuse("must be API_KEY, BASIC or OAUTH_CLIENT_CREDENTIALS"),
    };
    let at = fields.required(field)?;
    let auth = at.mapping(|auth_fields| match field {
        "ApiKeyAuthParameters" => {
            let header = literal(&auth_fields.required("ApiKeyName")?)?;
            let value = secrets.secret(auth_fields, "ApiKeyValue", "API_KEY");
            Some(json!({ "header": { "name": header, "value": value } }))
        }
        "BasicAuthParameters" => {
            let user = literal(&auth_fields.required("Username")?)?;
            let password = secrets.secret(auth_fields, "Password", "PASSWORD");
            Some(json!({ "basic": { "user": user, "password": password } }))
        }
        _ => oauth2(auth_fields, secrets).map(|client| json!({ "oauth2": client })),
    })??;
    Some((auth, at))
}

/// Reads a list of parameters. The output of the AWS CLI contains no values of secrets.
fn parameters<'a>(
    fields: &Fields<'a>,
    field: &'static str,
    secrets: &Secrets<'_>,
) -> Option<Vec<Parameter<'a>>> {
    let Some(list) = fields.given(field) else { return Some(Vec::new()) };
    list.each(|at| {
        at.mapping(|parameter| {
            let name = literal(&parameter.required("Key")?)?;
            let value = match parameter.is_true("IsValueSecret") {
                true => Value::Secret(secrets.secret(parameter, "Value", name)),
                false => Value::Stated(literal(&parameter.required("Value")?)?),
            };
            Some(Parameter { name, value, at: at.clone() })
        })?
    })
}

/// Returns the native form of `OAuthParameters`.
fn oauth2(fields: &Fields<'_>, secrets: &Secrets<'_>) -> Option<Json> {
    let endpoint = fields.required("AuthorizationEndpoint")?;
    let mut token_url = literal(&endpoint)?.to_owned();
    if let Some(method) =
        fields.given("HttpMethod").filter(|method| method.peek_text() != Some("POST"))
    {
        method.warn(Message::new("no effect: lastmile requests tokens with POST"));
    }
    let client = fields.required("ClientParameters")?.mapping(|client_fields| {
        let id = literal(&client_fields.required("ClientID")?)?;
        Some((id.to_owned(), secrets.secret(client_fields, "ClientSecret", "CLIENT_SECRET")))
    });
    let (id, client_secret) = client??;
    let mut written = json!({ "clientId": id, "clientSecret": client_secret });
    if let Some(added) = section(fields, "OAuthHttpParameters")? {
        let read = added.mapping(|added_fields| {
            let body = parameters(added_fields, "BodyParameters", secrets)?;
            let query = parameters(added_fields, "QueryStringParameters", secrets)?;
            let headers = parameters(added_fields, "HeaderParameters", secrets)?;
            Some((body, query, headers))
        });
        let (body, query, headers) = read??;
        form(&body, &mut written);
        for parameter in &query {
            token_url = with_parameter(token_url, parameter);
        }
        for Parameter { name, at, .. } in headers {
            if !name.eq_ignore_ascii_case("content-type") {
                at.warn(format!("lastmile does not send the header {name} in token requests"));
            }
        }
    }
    written["tokenUrl"] = json!(token_url);
    Some(written)
}

/// Adds the form fields of a token request. A secret in a form field only causes a warning,
/// because it cannot be sent.
fn form(body: &[Parameter<'_>], written: &mut Json) {
    let mut others = Map::new();
    for Parameter { name, value, at } in body {
        match value {
            Value::Secret(_) => at.warn(not_sent(name)),
            Value::Stated("client_credentials") if *name == "grant_type" => {}
            Value::Stated(_) if *name == "grant_type" => {
                at.warn("no effect: lastmile requests tokens with the grant client_credentials");
            }
            Value::Stated(text) if NAMED_PARAMETERS.contains(name) => written[*name] = json!(text),
            Value::Stated(text) => _ = others.insert((*name).to_owned(), json!(text)),
        }
    }
    if !others.is_empty() {
        written["parameters"] = Json::Object(others);
    }
}

fn with_parameter(url: String, Parameter { name, value, at }: &Parameter<'_>) -> String {
    let Value::Stated(text) = value else {
        at.warn(not_sent(name));
        return url;
    };
    let Ok(mut parsed) = url::Url::parse(&url) else { return url };
    parsed.query_pairs_mut().append_pair(name, text);
    parsed.into()
}

fn not_sent(name: &str) -> Message {
    let message = format!("the parameter {name} of the token request cannot be a secret");
    Message::new(message)
        .help("set it in parameters only if everyone with access to the file may read it")
}
