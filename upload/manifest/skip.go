package manifest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/upload"
	"gcsup/upload/internal/runsort"
)

// Skip yields the jobs that are not finished, in the same order. A job is finished
// if the last record of its destination is done or skipped, and its source is
// unchanged: it has the same size, modification time, change time and inode. If
// only the change time differs, as after a chmod, Skip reads the file and
// compares its CRC32C with that of the object. The device number may differ. If
// the platform has no inodes, the path must be the same.
//
// If a job was looked up, see [upload.Job].Listed, it is finished only if its Object is the recorded one, in the
// sense of [Comparison].Difference. Otherwise Skip does not know whether the object still exists.
//
// Skip reads the records that existed when the manifest was opened, and have its endpoint. If there
// are any, the jobs must be sorted by the raw bytes of the bucket name, and then of the object name.
// Otherwise the last pair has an error that wraps [ErrUnsorted]. Jobs with an Err are yielded in
// their position.
//
// If the manifest cannot be read or sorted, or ctx is done, the last pair has a
// zero Job and the error. An error that wraps [ErrVersion] comes before any job.
func (m *Manifest) Skip(ctx context.Context, jobs iter.Seq[upload.Job]) iter.Seq2[upload.Job, error] {
	return func(yield func(upload.Job, error) bool) {
		if err := m.skip(ctx, jobs, func(job upload.Job) bool { return yield(job, nil) }); err != nil {
			yield(upload.Job{}, fmt.Errorf("manifest %s: %w", m.path, err))
		}
	}
}

func (m *Manifest) skip(ctx context.Context, jobs iter.Seq[upload.Job], yield func(upload.Job) bool) error {
	if m.before == 0 {
		for job := range jobs {
			if !yield(job) {
				return nil
			}
		}
		return nil
	}
	sorter := runsort.New(comparePacked, &runsort.Options{Dir: filepath.Dir(m.path)})
	defer sorter.Close()
	if err := m.sort(ctx, sorter); err != nil {
		return err
	}
	next, stop := iter.Pull2(latest(sorter.Sorted()))
	defer stop()
	packed, err, more := next()
	var key, last []byte
	for job := range jobs {
		if job.Err != nil {
			if !yield(job) {
				return nil
			}
			continue
		}
		key = appendKey(key[:0], job.Spec.Bucket, job.Spec.Object)
		if bytes.Compare(key, last) < 0 {
			return fmt.Errorf("%w: %s is after %s", ErrUnsorted, job.Spec.URL(), "gs://"+string(bytes.Replace(last, []byte{0}, []byte("/"), 1)))
		}
		last = append(last[:0], key...)
		for more && err == nil {
			if recorded, _ := packedKey(packed); bytes.Compare(recorded, key) >= 0 {
				break
			}
			packed, err, more = next()
		}
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %v", ctx.Err(), context.Cause(ctx))
		}
		if more {
			if recorded, _ := packedKey(packed); bytes.Equal(recorded, key) && m.unchanged(ctx, job, unpack(packed)) {
				m.finished.Add(1)
				continue
			}
		}
		if !yield(job) {
			return nil
		}
	}
	return nil
}

// sort adds the records to sorter.
func (m *Manifest) sort(ctx context.Context, sorter *runsort.Sorter) error {
	var packed []byte
	damaged, err := readRecords(ctx, io.NewSectionReader(m.read, 0, m.before), func(r Record) error {
		if m.endpoint != "" && r.endpoint != m.endpoint {
			return nil
		}
		packed = r.pack(packed[:0])
		return sorter.Add(packed)
	})
	m.damaged.Add(damaged)
	return err
}

// readRecords calls add with each record in r, which ends after a line. It returns the number of damaged lines.
func readRecords(ctx context.Context, r io.Reader, add func(Record) error) (damaged int64, err error) {
	lines := bufio.NewReaderSize(r, lineLimit)
	for {
		text, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return damaged, nil
		case ctx.Err() != nil:
			return damaged, fmt.Errorf("%w: %v", ctx.Err(), context.Cause(ctx))
		case errors.Is(err, bufio.ErrBufferFull):
			damaged++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = lines.ReadSlice('\n')
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return damaged, err
			}
			continue
		case err != nil:
			return damaged, err
		}
		record, err := decode(bytes.TrimRight(text, "\r\n"))
		switch {
		case errors.Is(err, ErrVersion):
			return damaged, err
		case err != nil:
			damaged++
			continue
		}
		if err := add(record); err != nil {
			return damaged, err
		}
	}
}

// latest yields the last of the records of each destination.
func latest(records iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var held []byte
		for record, err := range records {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(held) > 0 && comparePacked(held, record) != 0 && !yield(held, nil) {
				return
			}
			held = append(held[:0], record...)
		}
		if len(held) > 0 {
			yield(held, nil)
		}
	}
}

// unchanged reports whether a job is finished. r is the last record of its
// destination.
func (m *Manifest) unchanged(ctx context.Context, job upload.Job, r Record) bool {
	if !r.finished() || job.Listed && r.difference(job.Object) != upload.ObjectEqual {
		return false
	}
	now, err := m.identity(job.Path)
	if err != nil {
		return false // the upload reports it
	}
	if (now.Inode == 0 || r.Source.Inode == 0) && job.Path != r.Path {
		return false
	}
	r.Source.Device = now.Device // differs on another machine, and after a new mount
	switch sourcefile.Compare(r.Source, now) {
	case sourcefile.Same:
		return true
	case sourcefile.ChangeTimeOnly:
		// The object of a file that was skipped may have other bytes.
		return r.Status == Done && r.HasCRC32C && hasCRC32C(ctx, job.Path, now, r.CRC32C)
	}
	return false
}

// hasCRC32C reports whether a file still has the identity, and its bytes have the
// checksum want.
func hasCRC32C(ctx context.Context, path string, identity chunk.Identity, want uint32) bool {
	src, err := sourcefile.Open(path)
	if err != nil {
		return false
	}
	defer src.Close()
	sum, err := src.Hash(ctx, chunk.Checkpoint{}, identity.Size)
	if err != nil || sum.CRC32C != want {
		return false
	}
	now, err := src.Identity()
	return err == nil && now == identity
}
