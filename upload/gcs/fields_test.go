package gcs_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	raw "google.golang.org/api/storage/v1"

	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/gcs"
)

// refused are the fields of the official types that an upload cannot set.
var refused = []string{
	"ACL.Domain", "ACL.Email", "ACL.EntityID", "ACL.ProjectTeam", "ComponentCount", "Contexts.Custom.CreateTime", "Contexts.Custom.Delete",
	"Contexts.Custom.UpdateTime", "Created", "CustomerKeySHA256", "Deleted", "Etag", "Finalized", "Generation", "HardDeleteTime", "MediaLink",
	"Metageneration", "Owner", "Prefix", "RetentionExpirationTime", "Size", "SoftDeleteTime", "Updated",
}

// TestNewSpec goes through the fields of storage.ObjectAttrs, storage.Conditions and Spec. Each
// has a counterpart of the same name and value, or is in a list here. A new field of either is in
// no list.
func TestNewSpec(t *testing.T) {
	attrs, conditions := filled[storage.ObjectAttrs](), filled[storage.Conditions]()
	conditions.DoesNotExist = false
	_, err := gcs.NewSpec(&attrs, &conditions)
	if want := "an upload cannot set " + strings.Join(refused, ", "); !errors.Is(err, session.ErrInvalid) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("all fields are set: %v\nwant %s", err, want)
	}
	for _, name := range refused {
		if field := reflect.ValueOf(&attrs).Elem().FieldByName(name); field.IsValid() {
			field.SetZero()
		}
	}
	attrs.ACL[0] = storage.ACLRule{Entity: attrs.ACL[0].Entity, Role: attrs.ACL[0].Role}
	for key, payload := range attrs.Contexts.Custom {
		attrs.Contexts.Custom[key] = storage.ObjectCustomContextPayload{Value: payload.Value}
	}
	before := leaves(attrs)
	spec, err := gcs.NewSpec(&attrs, &conditions)
	require.NoError(t, err)
	want, got := leaves(attrs), leaves(spec)
	if !maps.Equal(want, before) {
		t.Errorf("NewSpec changed the attributes: %v, before %v", want, before)
	}
	want["Object"] = want["Name"]
	delete(want, "Name")
	for name, value := range leaves(conditions) {
		want["If"+name] = value
	}
	if !maps.Equal(got, want) {
		t.Errorf("NewSpec = %v, want %v", got, want)
	}
	wantOnly(t, "Spec", filled[session.Spec](), got,
		"ACL.Domain", "ACL.Email", "ACL.EntityID", "ACL.ProjectTeam.ProjectNumber", "ACL.ProjectTeam.Team", "Contexts.Custom.CreateTime", "Contexts.Custom.UpdateTime", // which the service sets
		"EncryptionKey",      // of ObjectHandle.Key
		"UserProject",        // of the BucketHandle
		"Gzip",               // compressed by package upload
		"DefaultContentType", // for resumed uploads
		"NoClobber")          // for resumed uploads

	spec, err = gcs.NewSpec(nil, &storage.Conditions{DoesNotExist: true})
	if !maps.Equal(leaves(spec), map[string]string{"IfGenerationMatch": "0"}) || err != nil {
		t.Errorf("DoesNotExist: %v, %v", leaves(spec), err)
	}
	if _, err := gcs.NewSpec(nil, &storage.Conditions{DoesNotExist: true, GenerationMatch: 1}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("DoesNotExist and GenerationMatch: %v, want ErrInvalid", err)
	}
}

// TestObjectAttrs goes through the fields of Object, of storage.ObjectAttrs, and of the resource
// that the service returns. Each has a counterpart of the same name and value, or is in a list here.
func TestObjectAttrs(t *testing.T) {
	object := filled[session.Object]()
	want, got := leaves(object), leaves(*gcs.ObjectAttrs(&object))
	wantOnly(t, "ObjectAttrs", filled[storage.ObjectAttrs](), got, "Prefix", "PredefinedACL", "Contexts.Custom.Delete")
	wantOnly(t, "Object", object, got,
		"HasCRC32C", "Gzip", "FileModTime", "UncompressedSize", // package session derives them
		"RestoreToken", "SelfLink", "StorageClassUpdated") // the official library drops them
	maps.DeleteFunc(want, func(name, _ string) bool { return got[name] == "" })
	if !maps.Equal(got, want) {
		t.Errorf("ObjectAttrs = %v, want %v", got, want)
	}
	if gcs.ObjectAttrs(nil) != nil {
		t.Error("ObjectAttrs of nil is not nil")
	}

	resource, ours := jsonNames(reflect.TypeFor[raw.Object]()), jsonNames(reflect.TypeFor[session.Object]())
	if diff := difference(resource, ours); !slices.Equal(diff, []string{"customerEncryption", "id", "kind"}) {
		t.Errorf("in the resource only: %q", diff)
	}
	if diff := difference(ours, resource); !slices.Equal(diff, []string{"customerKeySHA256", "fileModTime", "gzip", "hasCRC32C", "uncompressedSize"}) {
		t.Errorf("in Object only: %q", diff)
	}
}

// TestWriterFields checks that docs/library/from-storage-writer.md says what replaces each field of
// storage.Writer.
func TestWriterFields(t *testing.T) {
	page, err := os.ReadFile("../../docs/library/from-storage-writer.md")
	require.NoError(t, err)
	for field := range reflect.TypeFor[storage.Writer]().Fields() {
		if field.IsExported() && !strings.Contains(string(page), "`w."+field.Name+"`") {
			t.Errorf("the page has no `w.%s`", field.Name)
		}
	}
}

// filled returns a value all of whose fields are set, each to another value. A slice or a map has
// one element.
func filled[T any]() T {
	var value T
	n := 0
	fill(reflect.ValueOf(&value).Elem(), &n)
	return value
}

func fill(v reflect.Value, n *int) {
	*n++
	switch field := v.Addr().Interface().(type) {
	case *time.Time:
		*field = time.Unix(int64(*n), 0).UTC()
		return
	case *session.EncryptionKey:
		*field, _ = session.NewEncryptionKey(make([]byte, 32))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), element)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	default:
		v.Set(reflect.ValueOf(*n % 256).Convert(v.Type()))
	}
}

// leaves returns the text of each field that is set, by its name. Pointers, slices and maps have no
// name of their own.
func leaves(of any) map[string]string {
	set := map[string]string{}
	var visit func(name string, v reflect.Value)
	visit = func(name string, v reflect.Value) {
		_, plain := v.Interface().(fmt.Stringer) // such as time.Time
		switch {
		case v.Kind() == reflect.Struct && !plain && v.Type() != reflect.TypeFor[session.EncryptionKey]():
			for field, value := range v.Fields() {
				visit(strings.TrimPrefix(name+"."+field.Name, "."), value)
			}
		case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() != reflect.Struct:
			set[name] = fmt.Sprint(v.Elem()) // 0 is a value, too
		case v.Kind() == reflect.Pointer && !v.IsNil():
			visit(name, v.Elem())
		case v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
			for _, element := range v.Seq2() {
				visit(name, element)
			}
		case !v.IsZero():
			set[name] = fmt.Sprint(v)
		}
	}
	visit("", reflect.ValueOf(of))
	return set
}

// wantOnly fails unless the fields of all that are not in some are those that are listed.
func wantOnly(t *testing.T, what string, all any, some map[string]string, listed ...string) {
	t.Helper()
	slices.Sort(listed)
	if diff := difference(slices.Collect(maps.Keys(leaves(all))), slices.Collect(maps.Keys(some))); !slices.Equal(diff, listed) {
		t.Errorf("%s: without a counterpart are %q, want %q", what, diff, listed)
	}
}

// difference returns what is in all and not in some, sorted.
func difference(all, some []string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for _, name := range all {
			if !slices.Contains(some, name) && !yield(name) {
				return
			}
		}
	})
}

// jsonNames returns the names of the fields of a struct in JSON.
func jsonNames(of reflect.Type) (names []string) {
	for field := range of.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); field.IsExported() && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
