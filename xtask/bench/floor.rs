//! The least a client can do, for `cargo xtask bench cli`: the same number of requests on one connection, each answer read to
//! its end, and nothing else. Compiled by the bench alone, without any crate. Arguments: address, requests.

use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("an address is missing")?;
    let requests: usize = arguments.next().ok_or("the number of requests is missing")?.parse()?;
    let body = r#"{"model":"mock","stream":true,"messages":[{"role":"user","content":"What do the notes say?"}]}"#;
    let mut stream = TcpStream::connect(&address)?;
    stream.set_nodelay(true)?;
    let mut buffer = [0_u8; 16 * 1024];
    for _ in 0..requests {
        let length = body.len();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )?;
        let mut said = Vec::new();
        while !said.ends_with(b"\r\n0\r\n\r\n") {
            let read = stream.read(&mut buffer)?;
            if read == 0 {
                return Err("the answer broke off".into());
            }
            said.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
    }
    println!("word");
    Ok(())
}
