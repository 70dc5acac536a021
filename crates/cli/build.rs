//! How the program is linked where it is built for the machine it is built on: two things that every start would pay for.
//!
//! The unwinder goes into the program: as a library of its own, which nothing else here uses, it costs about a tenth of a
//! millisecond (it is mapped, relocated, and asks the processor what it can do). And the thirty thousand addresses that the
//! loader has to set are written as a bitmap instead of a list of 700 KiB: a tenth of the time of `--version`.
//!
//! Nothing is linked in another way when the compiler does not say where the archive is, or the system is too old for the
//! bitmap.

#![expect(clippy::disallowed_methods, reason = "a build script is asked in variables")]

use std::env;
use std::path::Path;
use std::process::Command;

/// The first version of the C library whose loader reads the bitmap.
const READS_BITMAPS: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    let is_gnu = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|set| set.contains("crt-static"));
    // A compiler for another machine is not the one that `cc` names, and a linker of somebody's own may not take these
    // arguments.
    let is_usual = env::var("HOST").ok() == env::var("TARGET").ok() && env::var("RUSTC_LINKER").is_err();
    if !is_gnu || is_static || !is_usual {
        return;
    }
    if let Some(archive) = answer("cc", "-print-file-name=libgcc_eh.a") {
        let archive = Path::new(&archive);
        if archive.is_absolute() && archive.is_file() {
            println!(
                "cargo::rustc-link-arg-bins=-Wl,--whole-archive,{},--no-whole-archive",
                archive.display()
            );
        }
    }
    let library = answer("getconf", "GNU_LIBC_VERSION");
    if library.as_deref().and_then(version).is_some_and(|version| version >= READS_BITMAPS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// What a program says to one question.
fn answer(program: &str, question: &str) -> Option<String> {
    let asked = Command::new(program).arg(question).output().ok()?;
    Some(String::from_utf8(asked.stdout).ok()?.trim().to_owned())
}

/// The numbers of `glibc 2.36`.
fn version(said: &str) -> Option<(u32, u32)> {
    let (major, minor) = said.strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
