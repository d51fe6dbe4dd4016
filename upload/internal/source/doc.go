// Package source has the bytes of an upload, their checksums and their identity. A
// [File] can be read again, a [Stream] cannot, a [Gzip] compresses a file while it is
// sent, and a [FileThenStream] is a file whose end is the start of a stream.
//
// The two main calls are [NewFile] and [File.Next], which returns the body of the next request.
// For a file of an earlier process, call [File.Adopt] and [File.Seek] first.
//
// The package knows no requests, retries, events or saved uploads. Its errors are those of a source:
// [session.ErrSourceChanged], [chunk.ErrChanged], [chunk.ErrRead], and the cause of a context.
//
// # Guarantees
//   - If bytes of a File differ from those of an earlier pass, the body ends with an error before
//     the first of them.
//   - Before the last body of a file is returned, the file is checked for changes.
//   - Package chunk hashes the bytes while they are read for a request. Those of a [Part] that fits in
//     memory are hashed before.
//   - Streams, compressed files and Parts share the memory budget of the caller.
package source
