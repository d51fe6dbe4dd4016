package upload

import (
	"fmt"
	"io/fs"
	"maps"
	"strconv"

	"gcsup/session"
)

// single reports whether a file of that size is sent in a single request. The request
// cannot be resumed, but carries the checksum.
func (o *Options) single(size int64) bool {
	for _, limit := range []int64{o.ChunkSize, o.CommitEvery.Bytes} {
		if limit > 0 && size > limit {
			return false
		}
	}
	return size <= smallLimit
}

// smallLimit is the maximum size of a file that is sent in one request.
const smallLimit = 8 << 20

// encryptionKey returns key with its secret, which may be one of
// [Options.EncryptionKeys].
func (o *Options) encryptionKey(key session.EncryptionKey) (session.EncryptionKey, error) {
	if key.IsZero() || key.HasSecret() {
		return key, nil
	}
	for _, k := range o.EncryptionKeys {
		if k.HasSecret() && k.SHA256() == key.SHA256() {
			return k, nil
		}
	}
	return key, fmt.Errorf("%w: its SHA-256 is %s", session.ErrEncryptionKey, key.SHA256())
}

// unlock returns the Spec of a saved upload with its encryption key, which is want if
// that is set.
func (o *Options) unlock(saved Spec, want session.EncryptionKey) (Spec, error) {
	if want.HasSecret() && want.SHA256() == saved.EncryptionKey.SHA256() {
		saved.EncryptionKey = want
	}
	key, err := o.encryptionKey(saved.EncryptionKey)
	saved.EncryptionKey = key
	return saved, err
}

// detected returns spec with the default content type, if it depends on the first bytes of the source,
// which head returns. It does nothing if there are none: the upload reports an error of
// reading.
func (o *Options) detected(spec Spec, head func() []byte) Spec {
	if o.DetectContentType == nil || spec.ContentType != "" || spec.DefaultContentType != "" {
		return spec
	}
	if first := head(); len(first) > 0 {
		spec.DefaultContentType = o.DetectContentType(first)
	}
	return spec
}

// withPOSIX returns spec with the attributes of a file in its metadata.
func withPOSIX(spec Spec, info fs.FileInfo) Spec {
	if info == nil {
		return spec
	}
	spec = withMetadata(spec, session.FileModTimeKey, info.ModTime().Unix())
	if p, ok := posixOf(info); ok {
		spec.Metadata[session.FileAccessTimeKey] = strconv.FormatInt(p.accessed, 10)
		spec.Metadata[session.FileUIDKey] = strconv.FormatUint(uint64(p.uid), 10)
		spec.Metadata[session.FileGIDKey] = strconv.FormatUint(uint64(p.gid), 10)
		spec.Metadata[session.FileModeKey] = fmt.Sprintf("%03o", info.Mode().Perm())
	}
	return spec
}

// withMetadata returns spec with a number in a copy of its metadata.
func withMetadata(spec Spec, key string, n int64) Spec {
	metadata := make(map[string]string, len(spec.Metadata)+1)
	maps.Copy(metadata, spec.Metadata)
	metadata[key] = strconv.FormatInt(n, 10)
	spec.Metadata = metadata
	return spec
}

// posix has the attributes of a file for which fs.FileInfo has no method.
type posix struct {
	accessed int64 // seconds since 1970
	uid, gid uint32
}
