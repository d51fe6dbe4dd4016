package manifest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/runsort"
)

// A Check compares the objects that a manifest records with those in their buckets. It needs none of the files that
// were uploaded, and does not lock or change the manifest.
type Check struct {
	Path        string // of the manifest
	Extra       bool   // also yield the objects without a record
	UserProject string // project that is billed, for requester-pays buckets

	// Damaged and Elsewhere are complete when an iteration has ended.
	Damaged   int64            // lines that were ignored
	Elsewhere map[string]int64 // records of other endpoints, which were not compared, by endpoint
}

// A Comparison is the state of a recorded object, or of an object without a record.
type Comparison struct {
	// Record is the last record of the object, without Reason and Time. For an object without a record, it is zero.
	Record Record

	// Object is nil if there is none. It has the fields of [upload.Uploader.List].
	Object *session.Object

	// Difference is how the object differs from the record. For a file that failed, or was skipped without a
	// checksum, any object is equal. A link or a socket that was skipped needs no object. Another generation
	// of the object is no difference if it has the same bytes: compare Record.Generation with
	// Object.Generation. An object without a record is NotCompared.
	Difference upload.Difference
}

// Compare compares the records of the endpoint of u, and those without an endpoint, in the order of their buckets
// and object names. It makes one listing of each bucket in the manifest, of the longest common prefix of the
// recorded names. With Extra, the prefix ends after its last slash. Temporary objects of uploads, saved uploads and
// folders of the Cloud console are not yielded as extra.
//
// Memory does not grow with the number of records: they are sorted on disk, in temporary files beside the manifest.
//
// If a bucket cannot be listed, a pair has the error, and a Record with only the Bucket. The rest of its records is
// not compared, and the next bucket follows. If the manifest cannot be read or sorted, or ctx is done, the last
// pair has the error and a zero Comparison. It may wrap [ErrVersion] or [ErrFormat].
func (c *Check) Compare(ctx context.Context, u *upload.Uploader) iter.Seq2[Comparison, error] {
	return func(yield func(Comparison, error) bool) {
		if err := c.compare(ctx, u, yield); err != nil {
			yield(Comparison{}, fmt.Errorf("manifest %s: %w", c.Path, err))
		}
	}
}

func (c *Check) compare(ctx context.Context, u *upload.Uploader, yield func(Comparison, error) bool) error {
	sorter := runsort.New(comparePacked, &runsort.Options{Dir: filepath.Dir(c.Path)})
	defer sorter.Close()
	prefixes, err := c.sort(ctx, u.Endpoint(), sorter)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(latest(sorter.Sorted()))
	defer stop()
	records := cursor{next: next}
	for err = records.advance(); err == nil && records.ok; {
		bucket := records.Bucket
		listing := upload.Listing{Bucket: bucket, Prefix: prefixes[bucket], UserProject: c.UserProject}
		if c.Extra {
			listing.Prefix = listing.Prefix[:strings.LastIndexByte(listing.Prefix, '/')+1]
		}
		var more bool
		if more, err = c.compareBucket(ctx, u.List(ctx, listing), bucket, &records, yield); !more {
			return err
		}
	}
	return err
}

// sort adds the records of an endpoint to sorter. It returns the longest common prefix of the names in each bucket.
func (c *Check) sort(ctx context.Context, endpoint string, sorter *runsort.Sorter) (map[string]string, error) {
	c.Damaged, c.Elsewhere = 0, map[string]int64{}
	if info, err := os.Stat(c.Path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrFormat)
	}
	f, err := os.Open(c.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size, err := complete(f, info.Size())
	if err != nil {
		return nil, err
	}
	prefixes := map[string]string{}
	var packed []byte
	c.Damaged, err = readRecords(ctx, io.NewSectionReader(f, 0, size), func(r Record) error {
		if r.endpoint != "" && r.endpoint != endpoint {
			c.Elsewhere[r.endpoint]++
			return nil
		}
		if prefix, known := prefixes[r.Bucket]; !known {
			prefixes[r.Bucket] = r.Object
		} else if !strings.HasPrefix(r.Object, prefix) {
			prefixes[r.Bucket] = commonPrefix(prefix, r.Object)
		}
		packed = r.pack(packed[:0])
		return sorter.Add(packed)
	})
	return prefixes, err
}

// commonPrefix returns the longest common prefix of two names. It may end inside a character, whose bytes the service
// would refuse, so that it is cut before that.
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.ToValidUTF8(a[:n], "")
}

// compareBucket yields the comparisons of a bucket with those objects. more is false if the iteration has ended.
func (c *Check) compareBucket(
	ctx context.Context, objects iter.Seq2[*session.Object, error], bucket string, records *cursor,
	yield func(Comparison, error) bool,
) (more bool, err error) {
	// until yields the records before a name, which have no object.
	until := func(name string, all bool) (bool, error) {
		for records.ok && records.Bucket == bucket && (all || records.Object < name) {
			if !yield(compared(records.Record, nil), nil) {
				return false, nil
			}
			if err := records.advance(); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	for o, err := range objects {
		if err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			for records.ok && records.Bucket == bucket {
				if err := records.advance(); err != nil {
					return false, err
				}
			}
			return yield(Comparison{Record: Record{Bucket: bucket}}, err), nil
		}
		if more, err := until(o.Name, false); !more {
			return false, err
		}
		switch {
		case records.ok && records.Bucket == bucket && records.Object == o.Name:
			if !yield(compared(records.Record, o), nil) {
				return false, nil
			}
			if err := records.advance(); err != nil {
				return false, err
			}
		case c.Extra && uploaded(o) && !yield(Comparison{Object: o}, nil):
			return false, nil
		}
	}
	return until("", true)
}

// uploaded reports whether an object may be that of a file.
func uploaded(o *session.Object) bool {
	return !parts.Temporary(o.Name) && !bucketstore.Writes(o.Name) && !(o.Size == 0 && strings.HasSuffix(o.Name, "/"))
}

func compared(r Record, o *session.Object) Comparison {
	return Comparison{Record: r, Object: o, Difference: r.difference(o)}
}

// difference returns how the object at the destination, which may be nil, differs from the record.
func (r *Record) difference(o *session.Object) upload.Difference {
	file := r.Source != (chunk.Identity{})
	switch {
	case r.Status == Skipped && !file:
		return upload.ObjectEqual
	case o == nil:
		return upload.ObjectMissing
	case r.Status == Failed, r.Status == Skipped && !r.HasCRC32C:
		return upload.ObjectEqual
	case r.Status == Done && file && batch.CompareSize(o.Gzip, r.Source.Size, o) == batch.Differs:
		return upload.SizeDiffers
	case r.HasCRC32C && o.HasCRC32C && r.CRC32C != o.CRC32C:
		return upload.ContentDiffers
	case r.HasCRC32C && o.HasCRC32C, r.Generation != 0 && r.Generation == o.Generation:
		return upload.ObjectEqual
	}
	return upload.ChecksumMissing
}

// cursor reads sorted records.
type cursor struct {
	next func() ([]byte, error, bool)
	Record
	ok bool // there is a Record
}

// advance reads the next record.
func (c *cursor) advance() error {
	packed, err, ok := c.next()
	if c.ok = ok && err == nil; c.ok {
		c.Record = unpack(packed)
	}
	return err
}
