// Package closecheck is a check for go vet. It reports a Close that publishes a truncated object.
//
// The Writer of cloud.google.com/go/storage, and that of package gcsup/upload, publish on Close the bytes
// that were written before. They do not know that more bytes should have followed:
//
//	w := object.NewWriter(ctx)
//	defer w.Close() // publishes the bytes that were copied before the read failed
//	if _, err := io.Copy(w, file); err != nil {
//		return err
//	}
//	return w.Close()
//
// The check reports a Close that follows such a failure. It accepts a Close
//
//   - after the context of the Writer is canceled, or after CloseWithError or Abort,
//   - that does not run after the failure,
//   - in a function other than the one that has the Writer as a variable or parameter.
//
// Deferred calls run in reverse order. A deferred cancel before the line with NewWriter is therefore too
// late for a deferred Close.
//
// # What counts as a failure
//
// A call with the Writer as an argument, directly or in a gzip.Writer, a json.Encoder or the like, whose error can
// come from something other than the Writer: io.Copy, Encode, a function of the program. It also counts
// if its error is ignored.
//
// Any other call whose error makes the function return before the last bytes are written.
//
// If Write itself fails, the upload has failed, and Close makes no object. Write, fmt.Fprint,
// io.WriteString, and io.Copy from a bytes.Reader, bytes.Buffer or strings.Reader are therefore not reported.
//
// # What is not found
//
// A panic, a Writer in a field of a struct, a goroutine that writes, and an error that is recorded only in a variable
// whose type is not error. If a deferred function has a condition that the check cannot decide, it reports nothing.
package closecheck
