// Package stream splits a reader that can be read only once into parts, and keeps each part in
// memory until the service has committed it.
//
// Call [Memory.NewStream] for standard input or any other [io.Reader], and
// [Stream.Next] for each part. A part stays in memory until [Stream.Release] is
// called. Streams of one [Memory] share a budget. [Stream.Divide] makes sections of the rest, of which
// many can be in use at a time.
//
// # Guarantees
//
//   - Memory is bounded: two windows per Stream, or its share if it is divided into sections.
//   - One goroutine per Stream reads the source. It no longer reads when Close returns.
//   - After an error no part of a stream is marked Last.
package stream
