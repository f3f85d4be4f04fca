//! The `aws-chunked` framing, in which SDKs send a body that is followed by its checksum.
//!
//! Separate because the framing is pure and easy to get wrong.
//!
//! Promises: returns the content, or `None` for an invalid frame. Does not verify the signature of
//! a chunk or the trailing checksum:
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html>.

/// Returns the content of a framed body: chunks `SIZE[;extension]\r\nBYTES\r\n`, the last with size
/// 0. Returns `None` if a frame is invalid.
pub(super) fn content(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(body.len());
    loop {
        let (head, rest) = split_line(body)?;
        let size = chunk_size(head)?;
        // Trailers follow, such as the checksum.
        if size == 0 {
            return Some(content);
        }
        content.extend_from_slice(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

fn split_line(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = body.windows(2).position(|pair| pair == b"\r\n")?;
    Some((body.get(..end)?, body.get(end + 2..)?))
}

fn chunk_size(head: &[u8]) -> Option<usize> {
    let digits = head.split(|byte| *byte == b';').next()?;
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_with_or_without_signatures_and_trailers() {
        let plain = b"5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n";
        assert_eq!(content(plain).as_deref(), Some(&b"hello world"[..]));
        let signed = b"a;chunk-signature=00ff\r\n0123\r\n6789\r\n0;chunk-signature=00ff\r\n\r\n";
        assert_eq!(content(signed).as_deref(), Some(&b"0123\r\n6789"[..]));
        assert_eq!(content(b"0\r\n\r\n").as_deref(), Some(&b""[..]));
    }

    #[test]
    fn a_broken_frame_is_refused() {
        for broken in [
            &b""[..],
            b"5\r\nhell",
            b"5\r\nhelloo\r\n0\r\n\r\n",
            b"x\r\n",
            b"ffffffffffffffff\r\na",
            b"5\r\nhello\r\n",
        ] {
            assert_eq!(content(broken), None, "{broken:?}");
        }
    }
}
