package envai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"
)

const versionHeader = "X-Envai-Contract-Version"

var (
	accepts    = map[string]string{"json": "application/json", "none": "application/json", "bytes": "*/*", "events": "text/event-stream"}
	traceNames = []string{"traceparent", "tracestate", "baggage", "b3", "x-b3-", "x-request-id", "x-correlation-id"}
)

// operation is one row of the contract's inventory.
type operation struct {
	id, method, path string
	result, unwrap   string
	auth, negotiated bool
	media            string
}

func (o *operation) legacy() bool {
	return o.id == "getCapabilitiesLegacy" || o.id == "streamChatEventsLegacy"
}

// request is one HTTP request. It prints only what may be seen by anyone.
type request struct {
	operation     *operation
	url, label    string
	header        http.Header
	connect, read time.Duration
	content       []byte
	parts         []part
}

// part is one of a form: a field, or a file.
type part struct {
	name, value string
	file        *File
}

// File is an upload. Content is read once, as it is sent.
type File struct {
	// Name and ContentType are what the server is told; the type is that of the name's suffix if it is empty.
	Name, ContentType string
	Content           io.Reader
}

// FileOf is an upload of bytes.
func FileOf(name string, content []byte) File {
	return File{Name: name, Content: bytes.NewReader(content)}
}

// OpenFile is an upload of a file on disk. It is closed once it was sent.
func OpenFile(path string) (File, error) {
	file, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	return File{Name: filepath.Base(path), Content: file}, nil
}

func (f File) contentType() string {
	if f.ContentType != "" {
		return f.ContentType
	}
	if kind := mime.TypeByExtension(filepath.Ext(f.Name)); kind != "" {
		return kind
	}
	return "application/octet-stream"
}

// build is the request for an operation; version is the contract spoken.
func (c *Client) build(ctx context.Context, op *operation, path []string, params any, version int, timeout time.Duration) (*request, error) {
	req := &request{operation: op, header: c.headers(ctx, op, version), connect: c.timeouts.Connect, read: c.timeouts.Request}
	if timeout > 0 {
		req.read = timeout
	}
	req.label = op.path
	if version == 2 {
		req.label = strings.Replace(op.path, "/atp/v3/", "/", 1)
	}
	address, err := c.address(op, req.label, path)
	if err != nil {
		return nil, err
	}
	query, err := req.place(params)
	if err != nil {
		return nil, err
	}
	if req.url = address; query != "" {
		req.url += "?" + query
	}
	if op.media == "application/json" {
		req.header.Set("Content-Type", op.media)
		if req.content, err = marshal(params); err != nil {
			return nil, fmt.Errorf("envai: %s: what it was given has no JSON form", op.id)
		}
		if params == nil {
			req.content = []byte("{}")
		}
	}
	return req, nil
}

func (c *Client) headers(ctx context.Context, op *operation, version int) http.Header {
	header := http.Header{"Accept": {accepts[op.result]}, "User-Agent": {c.userAgent}}
	// Compression (the transport asks for it by itself) only where the body is read whole.
	if op.result != "json" && op.result != "none" {
		header.Set("Accept-Encoding", "identity")
	}
	if c.traceHeaders != nil {
		for name, values := range c.traceHeaders(ctx) {
			for _, prefix := range traceNames {
				if strings.HasPrefix(strings.ToLower(name), prefix) {
					header[http.CanonicalHeaderKey(name)] = values
				}
			}
		}
	}
	if op.negotiated && version == 3 {
		header.Set(versionHeader, acknowledged(op))
	}
	if op.auth && c.apiKey.value != "" {
		header.Set("Authorization", "Bearer "+c.apiKey.value)
	}
	return header
}

func acknowledged(op *operation) string {
	if op.legacy() {
		return "2"
	}
	return "3"
}

func (c *Client) address(op *operation, label string, path []string) (string, error) {
	switch op.id {
	case "getJwks":
		return c.jwksURL, nil
	case "getWikiWebhookJwks":
		return c.webhookJWKSURL, nil
	}
	for _, segment := range path {
		if segment == "" || segment == "." || segment == ".." {
			return "", fmt.Errorf("envai: %s: an identifier in the path is empty", op.id)
		}
		start, end := strings.IndexByte(label, '{'), strings.IndexByte(label, '}')
		label = label[:start] + escape(segment) + label[end+1:]
	}
	return c.baseURL + label, nil
}

// escape percent-encodes all but letters, digits and "-._~".
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// place puts each parameter where its tag says and gives the query. What JSON carries stays where it is.
func (r *request) place(params any) (string, error) {
	if params == nil {
		return "", nil
	}
	var query []string
	value := reflect.ValueOf(params)
	for i := range value.NumField() {
		field, kind := value.Field(i), value.Type().Field(i)
		if wireName(kind) == "path" && strings.Contains(r.operation.path, "/files") {
			if err := checkWorkspacePath(field.String()); err != nil {
				return "", err
			}
		}
		for _, place := range []string{"query", "header", "form", "file"} {
			name, rest, ok := strings.Cut(kind.Tag.Get(place), ",")
			if name == "" || ok && rest == "omitzero" && isZero(field) {
				continue
			}
			if err := r.put(place, name, field.Interface(), &query); err != nil {
				return "", err
			}
		}
	}
	return strings.Join(query, "&"), nil
}

func isZero(value reflect.Value) bool {
	if optional, ok := value.Interface().(interface{ IsZero() bool }); ok {
		return optional.IsZero()
	}
	return value.IsZero()
}

func (r *request) put(place, name string, value any, query *[]string) error {
	switch place {
	case "query":
		*query = append(*query, escape(name)+"="+escape(plainText(value)))
	case "header":
		text := plainText(value)
		if text == "" || len(text) > 255 || strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) >= 0 {
			return fmt.Errorf("envai: %s must be 1 to 255 printable ASCII characters without spaces", name)
		}
		r.header.Set(name, text)
	case "form":
		r.parts = append(r.parts, part{name: name, value: plainText(value)})
	case "file":
		files, ok := value.([]File)
		if !ok {
			files = []File{value.(File)}
		}
		for _, file := range files {
			r.parts = append(r.parts, part{name: name, file: &file})
		}
	}
	return nil
}

func plainText(value any) string {
	if optional, ok := value.(interface{ held() (any, bool) }); ok {
		value, _ = optional.held()
	}
	if moment, ok := value.(time.Time); ok {
		return moment.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}

// checkWorkspacePath refuses what no workspace accepts before it leaves; the server's own check stays the authority.
func checkWorkspacePath(path string) error {
	bad := !strings.HasPrefix(path, "/") || strings.Contains(path, `\`) || strings.Contains(path, "//") ||
		strings.IndexFunc(path, func(c rune) bool { return c < 32 || c == 127 }) >= 0 || path != "/" && strings.HasSuffix(path, "/")
	for _, segment := range strings.Split(path, "/") {
		bad = bad || segment == ".."
	}
	if bad {
		message := "workspace paths are absolute and hold no '..', backslash, control character or '//'"
		return &UnsafePathError{EnvaiError{Message: message}}
	}
	return nil
}

// body is what is sent; a form is written while it is sent. There is no GetBody on purpose: the transport must not
// send a mutation again by itself, whatever it carries.
func (r *request) body() (io.ReadCloser, int64, string) {
	if r.parts == nil {
		if r.content == nil {
			return nil, 0, ""
		}
		return io.NopCloser(bytes.NewReader(r.content)), int64(len(r.content)), ""
	}
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() { writer.CloseWithError(writeForm(form, r.parts)) }()
	return reader, -1, form.FormDataContentType()
}

func writeForm(form *multipart.Writer, parts []part) (problem error) {
	for _, part := range parts {
		if part.file == nil {
			if err := form.WriteField(part.name, part.value); err != nil {
				problem = err
			}
			continue
		}
		if err := writeFile(form, part.name, part.file); err != nil {
			problem = err
		}
	}
	if problem != nil {
		return problem
	}
	return form.Close()
}

func writeFile(form *multipart.Writer, name string, file *File) error {
	if closer, ok := file.Content.(io.Closer); ok {
		defer func() { _ = closer.Close() }()
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", "")
	header := textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="%s"; filename="%s"`, quote.Replace(name), quote.Replace(file.Name))},
		"Content-Type":        {file.contentType()},
	}
	target, err := form.CreatePart(header)
	if err == nil {
		_, err = io.Copy(target, file.Content)
	}
	return err
}
