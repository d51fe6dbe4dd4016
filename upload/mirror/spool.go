package mirror

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"

	"gcsup/session"
	"gcsup/upload/internal/runsort"
)

// spool keeps objects until all files were uploaded: in memory, or in a temporary file if they
// need more than 8 MiB. On Unix the file has no name, so that nothing remains after a crash.
type spool struct {
	bucket  string
	records *runsort.Sorter
	n       int64
	bytes   int64
}

// tail is the length of a record after the name: the generation, the size, and the reason.
const tail = 8 + 8 + 1

func newSpool(bucket, dir string) *spool {
	byName := func(a, b []byte) int { return bytes.Compare(a[:len(a)-tail], b[:len(b)-tail]) }
	return &spool{bucket: bucket, records: runsort.New(byName, &runsort.Options{Dir: dir})}
}

// add adds an object.
func (s *spool) add(o *session.Object, reason Reason) error {
	record := make([]byte, 0, len(o.Name)+tail)
	record = append(record, o.Name...)
	record = binary.BigEndian.AppendUint64(record, uint64(o.Generation))
	record = binary.BigEndian.AppendUint64(record, uint64(o.Size))
	if err := s.records.Add(append(record, byte(reason))); err != nil {
		return fmt.Errorf("keep the names of objects: %w", err)
	}
	s.n++
	s.bytes += o.Size
	return nil
}

// entry is an object of a spool.
type entry struct {
	object *session.Object
	reason Reason
}

// entries yields the objects once, in the order of their names, and closes the spool.
func (s *spool) entries() iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for record, err := range s.records.Sorted() {
			if err != nil {
				yield(entry{}, fmt.Errorf("read the names of objects: %w", err))
				return
			}
			name, rest := record[:len(record)-tail], record[len(record)-tail:]
			o := &session.Object{
				Bucket: s.bucket, Name: string(name),
				Generation: int64(binary.BigEndian.Uint64(rest)), Size: int64(binary.BigEndian.Uint64(rest[8:])),
			}
			if !yield(entry{o, Reason(rest[16])}, nil) {
				return
			}
		}
	}
}

func (s *spool) close() { s.records.Close() }
