package fakegcs

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Package encoding/json needs as much CPU time for the metadata of a small object as the
// rest of its upload. This file encodes what most objects have, byte for byte as encode
// does.

// appendJSON appends the JSON of r to p. ok is false if r has fields that only encode
// knows.
func (r *objectResource) appendJSON(p []byte) (_ []byte, ok bool) {
	o := r.Object
	if o.Contexts != nil || o.Retention != nil || o.CustomerEncryption != nil || o.ACL != nil || r.ACL != nil || r.Owner != nil || r.Size == nil || r.CRC32C == nil {
		return p, false
	}
	for _, t := range []*time.Time{&o.RetentionExpirationTime, &o.CustomTime, &o.TimeDeleted, &o.SoftDeleteTime, &o.HardDeleteTime} {
		if !t.IsZero() {
			return p, false
		}
	}
	w := jsonWriter{p: append(p, '{'), ok: true}
	w.text("kind", r.Kind)
	w.text("id", r.ID)
	w.text("selfLink", r.SelfLink)
	w.text("mediaLink", r.MediaLink)
	w.text("bucket", o.Bucket)
	w.text("name", o.Name)
	w.optionalNumber("generation", o.Generation)
	w.optionalNumber("metageneration", o.Metageneration)
	for _, f := range []struct{ name, value string }{
		{"contentType", o.ContentType}, {"contentEncoding", o.ContentEncoding}, {"contentDisposition", o.ContentDisposition},
		{"contentLanguage", o.ContentLanguage}, {"cacheControl", o.CacheControl}, {"storageClass", o.StorageClass},
	} {
		w.optionalText(f.name, f.value)
	}
	w.optionalTexts("metadata", o.Metadata)
	if o.ComponentCount != 0 {
		w.name("componentCount")
		w.p = strconv.AppendInt(w.p, int64(o.ComponentCount), 10)
	}
	w.optionalFlag("temporaryHold", o.TemporaryHold)
	w.optionalFlag("eventBasedHold", o.EventBasedHold)
	w.optionalText("kmsKeyName", o.KMSKeyName)
	w.optionalText("etag", o.Etag)
	w.name("size")
	w.number(*r.Size)
	w.name("crc32c")
	var crc [4]byte
	binary.BigEndian.PutUint32(crc[:], uint32(*r.CRC32C))
	w.base64(crc[:])
	if len(r.MD5) > 0 {
		w.name("md5Hash")
		w.base64(r.MD5)
	}
	w.optionalTime("timeCreated", o.TimeCreated)
	w.optionalTime("updated", o.Updated)
	w.optionalTime("timeFinalized", o.TimeFinalized)
	w.optionalTime("timeStorageClassUpdated", o.TimeStorageClassUpdated)
	return append(w.p, "\n}\n"...), w.ok
}

// jsonWriter writes the fields of a JSON object. ok is false after a value that is not
// written as encode does.
type jsonWriter struct {
	p      []byte
	indent string // of the fields, in addition to two spaces
	ok     bool
}

func (w *jsonWriter) name(name string) {
	if w.p[len(w.p)-1] != '{' {
		w.p = append(w.p, ',')
	}
	w.p = append(w.p, "\n  "...)
	w.p = append(w.p, w.indent...)
	w.p = append(w.p, '"')
	w.p = append(w.p, name...)
	w.p = append(w.p, `": `...)
}

func (w *jsonWriter) text(name, value string) {
	w.name(name)
	if !plainText(value) {
		w.ok = false
		return
	}
	w.p = append(w.p, '"')
	w.p = append(w.p, value...)
	w.p = append(w.p, '"')
}

func (w *jsonWriter) optionalText(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

// optionalTexts writes an object of text, one level below the fields.
func (w *jsonWriter) optionalTexts(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	w.name(name)
	inner := jsonWriter{p: append(w.p, '{'), indent: "  ", ok: w.ok}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !plainText(key) {
			w.ok = false
			return
		}
		inner.text(key, values[key])
	}
	w.p, w.ok = append(inner.p, "\n  }"...), inner.ok
}

func (w *jsonWriter) number(n int64) {
	w.p = append(w.p, '"')
	w.p = strconv.AppendInt(w.p, n, 10)
	w.p = append(w.p, '"')
}

func (w *jsonWriter) optionalNumber(name string, n int64) {
	if n != 0 {
		w.name(name)
		w.number(n)
	}
}

func (w *jsonWriter) optionalFlag(name string, set bool) {
	if set {
		w.name(name)
		w.p = append(w.p, "true"...)
	}
}

func (w *jsonWriter) optionalTime(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.p = append(w.p, '"')
		w.p = t.AppendFormat(w.p, timeFormat) // a time of the server's clock
		w.p = append(w.p, '"')
	}
}

func (w *jsonWriter) base64(p []byte) {
	w.p = append(w.p, '"')
	w.p = base64.StdEncoding.AppendEncode(w.p, p)
	w.p = append(w.p, '"')
}

// plainText reports whether JSON has s as it is: printable ASCII without quotes and
// backslashes.
func plainText[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// decodePlain is decodeObject for metadata of text without escapes, which most uploads
// have. ok is false for other metadata, and for metadata with errors.
func decodePlain(data []byte) (_ *Object, want checksums, ok bool) {
	o := &Object{}
	texts := func(name []byte) *string {
		switch string(name) {
		case "bucket":
			return &o.Bucket
		case "name":
			return &o.Name
		case "contentType":
			return &o.ContentType
		case "contentEncoding":
			return &o.ContentEncoding
		case "contentDisposition":
			return &o.ContentDisposition
		case "contentLanguage":
			return &o.ContentLanguage
		case "cacheControl":
			return &o.CacheControl
		case "storageClass":
			return &o.StorageClass
		case "kmsKeyName":
			return &o.KMSKeyName
		}
		return nil
	}
	r := jsonReader{data}
	ok = r.object(func(name []byte) bool {
		if string(name) == "metadata" {
			o.Metadata = map[string]string{}
			return r.object(func(key []byte) bool {
				value, ok := r.text()
				o.Metadata[string(key)] = string(value)
				return ok
			})
		}
		value, ok := r.text()
		if to := texts(name); to != nil {
			*to = string(value)
			return ok
		}
		switch string(name) {
		case "crc32c":
			want.crc = new(CRC32C)
			return ok && want.crc.UnmarshalText(value) == nil
		case "md5Hash":
			var err error
			want.md5, err = base64.StdEncoding.DecodeString(string(value))
			return ok && err == nil && len(want.md5) == md5.Size
		}
		return false
	})
	r.space()
	if !ok || len(r.rest) > 0 {
		return nil, checksums{}, false
	}
	class, err := storageClass(o.StorageClass)
	o.StorageClass = class
	return o, want, err == nil
}

// jsonReader reads JSON objects of plain text.
type jsonReader struct{ rest []byte }

func (r *jsonReader) space() {
	for len(r.rest) > 0 && (r.rest[0] == ' ' || r.rest[0] == '\n' || r.rest[0] == '\r' || r.rest[0] == '\t') {
		r.rest = r.rest[1:]
	}
}

// next reports whether c is next after space, and removes it.
func (r *jsonReader) next(c byte) bool {
	r.space()
	if len(r.rest) == 0 || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// object reads an object. value reads the value of each name.
func (r *jsonReader) object(value func(name []byte) bool) bool {
	if !r.next('{') {
		return false
	}
	if r.next('}') {
		return true
	}
	for {
		name, ok := r.text()
		if !ok || !r.next(':') || !value(name) {
			return false
		}
		if !r.next(',') {
			return r.next('}')
		}
	}
}

// text reads plain text. It is a part of the data.
func (r *jsonReader) text() ([]byte, bool) {
	if !r.next('"') {
		return nil, false
	}
	for i, c := range r.rest {
		if c == '"' {
			text := r.rest[:i]
			r.rest = r.rest[i+1:]
			return text, plainText(text)
		}
	}
	return nil, false
}
