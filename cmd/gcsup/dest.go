package main

import (
	"path/filepath"
	"strings"

	"gcsup/session"
)

const stdinName = "-"

// job is one source and its object.
type job struct {
	source string
	bucket string
	object string
}

// plan pairs the sources with their objects. If the destination is a bare bucket
// or ends in "/", each object gets the name of its source.
func plan(sources []string, destination string) ([]job, error) {
	bucket, object, err := parseDestination(destination)
	if err != nil {
		return nil, err
	}
	into := object == "" || strings.HasSuffix(object, "/")
	if len(sources) > 1 && !into {
		return nil, usagef("%d sources cannot become one object %s; end the destination with \"/\"", len(sources), destination)
	}
	jobs := make([]job, 0, len(sources))
	taken := map[string]string{}
	for _, source := range sources {
		if source == "" {
			return nil, usagef("SOURCE is an empty string")
		}
		if strings.HasPrefix(source, "gs://") {
			return nil, usagef("source %q: gcsup uploads files; it does not download or copy objects", source)
		}
		j := job{source, bucket, object}
		if into {
			base, err := baseName(source, destination)
			if err != nil {
				return nil, err
			}
			j.object += base
		}
		if other, ok := taken[j.object]; ok {
			return nil, usagef("%s and %s would both become gs://%s/%s", other, source, bucket, j.object)
		}
		taken[j.object] = source
		if err := (session.Spec{Bucket: j.bucket, Object: j.object}).Validate(); err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// parseDestination splits gs://BUCKET/OBJECT. '#', '?' and '%' are ordinary
// characters of an object name.
func parseDestination(raw string) (bucket, object string, err error) {
	rest, ok := strings.CutPrefix(raw, "gs://")
	if !ok {
		return "", "", usagef("destination %q: want gs://BUCKET/OBJECT", raw)
	}
	bucket, object, _ = strings.Cut(rest, "/")
	if bucket == "" {
		return "", "", usagef("destination %q has no bucket: want gs://BUCKET/OBJECT", raw)
	}
	return bucket, object, nil
}

// baseName returns the last element of a source's absolute path.
func baseName(source, destination string) (string, error) {
	if source == stdinName {
		return "", usagef("standard input has no name; name the object: %s/NAME", strings.TrimSuffix(destination, "/"))
	}
	abs, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	return filepath.Base(abs), nil
}
