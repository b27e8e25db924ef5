package envai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Download is a body in progress: an io.ReadCloser. Read it, copy it or Save it, and close it.
type Download struct {
	Header http.Header
	opened *response
	cancel context.CancelFunc
}

// Read is that of io.Reader.
func (d *Download) Read(into []byte) (int, error) { return d.opened.body.Read(into) }

// Close releases the connection.
func (d *Download) Close() error {
	d.opened.close()
	d.cancel()
	return nil
}

// ContentType is what the server says it is.
func (d *Download) ContentType() string { return d.Header.Get("Content-Type") }

// openDownload is the head of a download, its body unread.
func openDownload(ctx context.Context, c *Client, op *operation, path []string, params any, options []CallOption) (*Download, error) {
	s := readCall(options)
	version, err := c.version(ctx, op)
	if err != nil {
		return nil, naming(op, err)
	}
	req, err := c.build(ctx, op, path, params, version, s.timeout)
	if err != nil {
		return nil, naming(op, err)
	}
	download, err := c.openBytes(ctx, req)
	if err != nil {
		return nil, naming(op, err)
	}
	head := &answer{download.opened.status, download.Header, nil}
	if err := head.acknowledges(op, version); err != nil {
		_ = download.Close()
		return nil, naming(op, err)
	}
	return download, nil
}

func (c *Client) openBytes(ctx context.Context, req *request) (*Download, error) {
	ctx, cancel := context.WithCancel(ctx)
	opened, err := c.openSuccess(ctx, req)
	if err != nil {
		cancel()
		return nil, err
	}
	return &Download{opened.header, opened, cancel}, nil
}

// SaveOption changes how a download is written.
type SaveOption func(*saveSettings)

type saveSettings struct{ overwrite, direct bool }

// Overwrite replaces a file that is there.
func Overwrite() SaveOption { return func(s *saveSettings) { s.overwrite = true } }

// InPlace writes to the name itself. By default the name appears only when every byte is on disk.
func InPlace() SaveOption { return func(s *saveSettings) { s.direct = true } }

// Save writes the body to a file, a piece at a time, and closes it. Nothing is left behind on failure.
func (d *Download) Save(destination string, options ...SaveOption) (err error) {
	defer func() { _ = d.Close() }()
	var s saveSettings
	for _, option := range options {
		option(&s)
	}
	if info, bad := os.Stat(destination); bad == nil && info.IsDir() || filepath.Base(destination) == "." || strings.HasSuffix(destination, "/") {
		return &UnsafePathError{EnvaiError{Message: "the destination must be a file name, not a folder"}}
	} else if bad == nil && !s.overwrite {
		return &os.PathError{Op: "save", Path: destination, Err: os.ErrExist}
	}
	part, flags := destination, os.O_WRONLY|os.O_CREATE|os.O_TRUNC
	if !s.direct {
		part = filepath.Join(filepath.Dir(destination), "."+filepath.Base(destination)+".part")
	} else if !s.overwrite {
		flags |= os.O_EXCL
	}
	file, err := os.OpenFile(part, flags, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part)
		}
	}()
	_, err = io.Copy(file, d)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil || s.direct {
		return unjoined(err)
	}
	return publish(part, destination, s.overwrite)
}

// unjoined is the first of joined errors, so that a type switch sees it.
func unjoined(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
		return many.Unwrap()[0]
	}
	return err
}

// publish gives a finished part its name. A link never replaces what appeared meanwhile; a rename could.
func publish(part, destination string, overwrite bool) error {
	if overwrite {
		return os.Rename(part, destination)
	}
	err := os.Link(part, destination)
	if err == nil || errors.Is(err, os.ErrExist) {
		return errors.Join(err, os.Remove(part))
	}
	if _, taken := os.Stat(destination); taken == nil { // a file system without links
		return &os.PathError{Op: "save", Path: destination, Err: os.ErrExist}
	}
	return os.Rename(part, destination)
}

// DownloadToFile downloads a workspace file to destination; the rest as in Download.Save.
func (s *WorkspaceFilesService) DownloadToFile(ctx context.Context, workspaceID, path, destination string, options ...SaveOption) error {
	download, err := s.Download(ctx, workspaceID, path)
	if err != nil {
		return err
	}
	return download.Save(destination, options...)
}

// DownloadSigned opens a signed artifact URL as the server gave it, without credentials and only at its own origin.
func (s *ImagesService) DownloadSigned(ctx context.Context, address string) (*Download, error) {
	op := operations["downloadArtifact"]
	parsed, err := url.Parse(address)
	if err != nil || originOf(address) != originOf(s.client.baseURL) || !strings.HasSuffix(parsed.Path, "/artifacts/download") ||
		parsed.User != nil || parsed.Fragment != "" || parsed.Query().Get("signature") == "" {
		return nil, &UnsafePathError{EnvaiError{Message: "not a signed artifact URL of this server"}}
	}
	header := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}, "User-Agent": {s.client.userAgent}}
	timeouts := s.client.timeouts
	req := &request{operation: op, url: address, label: op.path, header: header, connect: timeouts.Connect, read: timeouts.Request}
	download, err := s.client.openBytes(ctx, req)
	return download, naming(op, err)
}

// DownloadToFile downloads a signed artifact URL to destination; the rest as in Download.Save.
func (s *ImagesService) DownloadToFile(ctx context.Context, address, destination string, options ...SaveOption) error {
	download, err := s.DownloadSigned(ctx, address)
	if err != nil {
		return err
	}
	return download.Save(destination, options...)
}
