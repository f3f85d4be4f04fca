//! Writes the Knative format ("configuring channel event delivery"): the CloudEvent, then the
//! extensions for errors. The extensions of the early draft follow (`errorsubscriberuri`,
//! `errorreason`, `errorretry`).
//!
//! Knative has no field for the time of publication, so our own fields contain it as `publishutc`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fields::{BlobFields, LASTMILE, whole_characters};
use super::flat::{self, PUBLISHED};
use crate::delivery::{DeadLetter, Delivery, Returned};
use crate::event::json::Object;
use crate::subscription::dead_letter_format::ErrorData;
use crate::time::moment;

/// Names of the attributes that this format adds to an event.
pub(super) const RESERVED: [&str; 7] = [
    "knativeerrordest",
    "knativeerrorcode",
    "knativeerrordata",
    "errorsubscriberuri",
    "errorreason",
    "errorretry",
    LASTMILE,
];

/// Maximum size of `knativeerrordata` in Knative.
/// <https://github.com/knative/eventing/blob/main/pkg/channel/attributes/transformers.go>
const DATA_MAX_BYTES: usize = 1_024;
/// Maximum number of bytes whose base64 form fits into [`DATA_MAX_BYTES`].
const DATA_BASE64_MAX_BYTES: usize = DATA_MAX_BYTES / 4 * 3;

/// Writes the dead letter; returns `None` if the event cannot be converted to a CloudEvent.
pub(super) fn element(fields: &BlobFields<'_>) -> Option<String> {
    let letter = fields.letter;
    let event = fields.json?;
    let (mut object, published) = flat::open_cloud_event(letter, event, &RESERVED)?;
    let failed = Failed::new(letter);
    let data = failed.response.map(|response| error_data(response, letter.error_data));
    object.optional("knativeerrordest", failed.address);
    object.optional("knativeerrorcode", failed.status);
    object.optional("knativeerrordata", data);
    object.optional(
        "errorsubscriberuri",
        letter.addresses.as_ref().map(|addresses| &addresses.subscriber),
    );
    object.text("errorreason", &letter.reason.to_string());
    object.put("errorretry", &letter.delivery.attempts);
    let mut own = Object::default();
    own.text("publishutc", &moment::rfc3339(letter.delivery.published_ms));
    fields.own(&mut own);
    own.raw(PUBLISHED, published.as_deref());
    object.text(LASTMILE, &own.finish());
    Some(object.finish())
}

/// The last failed request: to the sink if there was such a request, otherwise to the subscriber
/// or, for a reply, to the reply address.
struct Failed<'a> {
    address: Option<&'a str>,
    status: Option<u16>,
    response: Option<&'a [u8]>,
}

impl<'a> Failed<'a> {
    fn new(letter: &'a DeadLetter) -> Self {
        let (address, history, response) = match &letter.returned {
            Some(Returned { address, history, last_response, .. }) => {
                (address.as_deref(), history, last_response)
            }
            None => {
                let Delivery { history, last_response, .. } = &letter.delivery;
                (
                    letter.addresses.as_ref().map(|addresses| addresses.failed.as_str()),
                    history,
                    last_response,
                )
            }
        };
        let status = history.newest_attempt().and_then(|attempt| attempt.status);
        Self { address, status, response: response.as_deref() }
    }
}

/// Returns the last response, cut to the size limit. Attributes must not contain control
/// characters, so trailing ones are removed and others become spaces. Unlike Knative, this function
/// does not remove the others. Removing them could reassemble a credential that was not hidden:
/// only complete credentials are hidden.
fn error_data(response: &[u8], form: ErrorData) -> String {
    match form {
        ErrorData::Text => {
            let text = String::from_utf8_lossy(whole_characters(response));
            let mut text = text.trim_end_matches(char::is_control).replace(char::is_control, " ");
            text.truncate(text.floor_char_boundary(DATA_MAX_BYTES));
            text
        }
        ErrorData::Base64 => {
            let spaced = |byte: &u8| if byte.is_ascii_control() { b' ' } else { *byte };
            let last = response.iter().rposition(|byte| !byte.is_ascii_control());
            let bytes = response.iter().take(last.map_or(0, |at| at + 1));
            STANDARD.encode(bytes.map(spaced).take(DATA_BASE64_MAX_BYTES).collect::<Vec<u8>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_data_is_cut_at_a_character_and_has_no_control_characters() {
        for (response, text, base64) in [
            (&b""[..], String::new(), String::new()),
            (b"\r\n", String::new(), String::new()),
            (b"\na\r\nb\x7f\0c\r\n", " a  b  c".to_owned(), STANDARD.encode(" a  b  c")),
            (
                "gr\u{fc}\u{85}n".as_bytes(),
                "gr\u{fc} n".to_owned(),
                STANDARD.encode("gr\u{fc}\u{85}n"),
            ),
            (b"a\xffb", "a\u{fffd}b".to_owned(), STANDARD.encode(b"a\xffb")),
            (
                &[b"x", "ö".repeat(512).as_bytes()].concat(),
                format!("x{}", "ö".repeat(511)),
                String::new(),
            ),
        ] {
            assert_eq!(error_data(response, ErrorData::Text), text);
            if !base64.is_empty() || response.is_empty() {
                assert_eq!(error_data(response, ErrorData::Base64), base64);
            }
        }
        assert_eq!(error_data(&[b'x'; 1_024], ErrorData::Text).len(), 1_024);
        assert_eq!(error_data(&[b'x'; 1_024], ErrorData::Base64), STANDARD.encode([b'x'; 768]));
        assert!(error_data(&[0xff; 1_024], ErrorData::Text).len() <= 1_024);
    }
}
