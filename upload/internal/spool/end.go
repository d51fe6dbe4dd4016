package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/session/state"
)

// endRecord is the content of end.json.
type endRecord struct {
	V      int    `json:"v"`
	Size   int64  `json:"size"`
	CRC32C string `json:"crc32c"` // as in the JSON API
}

const (
	endVersion = 1
	endLimit   = 1 << 10 // of the file
)

// encodeEnd returns the content of end.json for a stream.
func encodeEnd(whole chunk.Checkpoint) []byte {
	text, err := json.Marshal(endRecord{endVersion, whole.Offset, checksum.Encode(whole.CRC32C)})
	if err != nil {
		panic(err) // the fields are plain
	}
	return append(text, '\n')
}

// decodeEnd decodes the result of encodeEnd.
func decodeEnd(text []byte) (whole chunk.Checkpoint, err error) {
	var r endRecord
	if json.Unmarshal(text, &r) == nil && r.V != endVersion { // before its fields, which may be new
		return whole, fmt.Errorf("%w: %s has version %d, this program knows %d", state.ErrVersion, endName, r.V, endVersion)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return whole, fmt.Errorf("%w: %s: %w", ErrDamaged, endName, err)
	}
	crc, err := checksum.Decode(r.CRC32C)
	if err != nil || r.Size < 0 {
		return whole, fmt.Errorf("%w: %s: invalid size or checksum", ErrDamaged, endName)
	}
	return chunk.Checkpoint{Offset: r.Size, CRC32C: crc}, nil
}

// readEnd returns the end of the stream, or nil if it was not recorded.
func readEnd(d disk) (*chunk.Checkpoint, error) {
	f, err := d.Open(endName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, endLimit)
	n, err := f.ReadAt(text, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	whole, err := decodeEnd(text[:n])
	return &whole, err
}

// writeEnd records the end of a stream durably. The segments and their names must be on the disk.
func writeEnd(d disk, whole chunk.Checkpoint) (err error) {
	if err := d.Remove(endTemp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.Create(endTemp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(encodeEnd(whole), 0)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.Rename(endTemp, endName)
	}
	if err == nil {
		err = d.Sync()
	}
	return err
}
