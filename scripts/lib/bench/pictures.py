"""Pictures of results, as SVG.  Needs matplotlib (Debian's python3-matplotlib).

A picture is transparent.  Its text has the colour of the reader's scheme, light or dark; the
other colours have contrast with both."""

import glob
import os
import re

import matplotlib

matplotlib.use('svg')
# pylint: disable=wrong-import-position
from matplotlib import pyplot
from matplotlib.patches import Patch

from results import read

COLORS = {'stock': '#8b949e', 'cpu': '#2f81f7', 'gpu': '#2da44e', 'duckdb': '#bf8700', 'pgstrom': '#a371f7'}
NAMES = {'stock': 'stock PostgreSQL', 'cpu': 'pg_gpusort, CPU', 'gpu': 'pg_gpusort, GPU',
         'duckdb': 'DuckDB', 'pgstrom': 'PG-Strom'}

# A colour that nothing else has, in whose place there is that of the reader's scheme.
INK = '#010203'
SCHEMES = """<style>svg { color: #1f2328; }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3; } }</style>"""

# Ours is slower if its time is more than this part of stock's.
LOSS = '#e5534b'

PHASE_COLORS = ('#2f81f7', '#bf8700', '#a371f7', '#2da44e', '#e5534b', '#8b949e')

pyplot.rcParams.update({
    'svg.fonttype': 'none', 'svg.hashsalt': 'pg_gpusort', 'font.family': 'sans-serif',
    'font.size': 10, 'text.color': INK, 'axes.labelcolor': INK, 'axes.edgecolor': INK,
    'xtick.color': INK, 'ytick.color': INK, 'axes.titlesize': 11, 'axes.titlelocation': 'left',
    'axes.spines.top': False, 'axes.spines.right': False, 'legend.frameon': False,
    'grid.color': INK, 'grid.alpha': 0.15, 'grid.linewidth': 0.6})


# ---- Results ----

def load(directory):
    """Returns the rows of all files; each also has the name of its file without .csv."""
    rows = []
    for path in sorted(glob.glob(os.path.join(directory, '*.csv'))):
        name = os.path.basename(path)[:-len('.csv')]
        rows += [dict(row, file=name) for row in read(path)]
    return rows


def select(rows, /, **wanted):
    """Returns the rows whose columns have these values, or one of these."""
    def fits(row):
        return all(row[name] in value if isinstance(value, (tuple, list)) else row[name] == value
                   for name, value in wanted.items())
    return [row for row in rows if fits(row)]


def time_of(row):
    """Returns milliseconds: the median, or what is in the middle of the least and the
    greatest."""
    if row['median_ms']:
        return float(row['median_ms'])
    return (float(row['min_ms']) + float(row['max_ms'])) / 2


def range_of(row):
    """Returns the least and the greatest, which may be unknown."""
    middle = time_of(row)
    return float(row['min_ms'] or middle), float(row['max_ms'] or middle)


def text_of(milliseconds):
    if milliseconds >= 1000:
        return f'{milliseconds / 1000:.2f} s'
    return f'{milliseconds:.0f} ms' if milliseconds >= 10 else f'{milliseconds:.2g} ms'


# ---- Drawing ----

def save(figure, directory, name):
    path = os.path.join(directory, f'{name}.svg')
    figure.savefig(path, transparent=True, bbox_inches='tight', metadata={'Date': None, 'Creator': None})
    pyplot.close(figure)
    with open(path, encoding='utf-8') as file:
        text = file.read()
    text = re.sub(r'(<svg [^>]*>)', r'\1\n' + SCHEMES, text.replace(INK, 'currentColor'), count=1)
    # No space at the ends of lines, so that git does not complain.
    text = re.sub(r' +$', '', text, flags=re.MULTILINE)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def legend(figure, who):
    figure.legend(handles=[Patch(color=COLORS[one], label=NAMES[one]) for one in who],
                  loc='lower left', bbox_to_anchor=(0.02, 1.0), ncols=len(who), borderaxespad=0)


def bars(axes, title, items):
    """Draws items, each a label and the rows of whom to compare with, which comes first, and of
    others.  The bars are in percent of the first one's time."""
    place = 0
    places, labels = [], []
    for label, rows in items:
        base = time_of(rows[0])
        start = place
        for row in rows:
            part = time_of(row) / base * 100
            least, greatest = (value / base * 100 for value in range_of(row))
            axes.barh(place, part, height=0.9, color=COLORS[row['who']])
            if greatest > least:
                axes.plot([least, greatest], [place, place], color=INK, linewidth=0.8, alpha=0.6)
            text = text_of(time_of(row))
            if row is not rows[0]:
                faster = base / time_of(row)
                text += f', {faster:.1f} ×' if faster >= 1.15 else f', {faster:.2f} ×'
            axes.text(max(part, greatest) + 1.5, place, text, va='center', fontsize=8.5,
                      color=LOSS if part > 105 else INK)
            place += 1
        places.append((start + place - 1) / 2)
        labels.append(label)
        place += 0.7
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_title(title)
    axes.margins(y=0.01)
    axes.xaxis.set_major_formatter(lambda value, _: f'{value:.0f} %')
    axes.grid(axis='x')
    axes.set_axisbelow(True)
    axes.tick_params(axis='y', length=0)


def bar_picture(directory, name, panels, compared_with='stock PostgreSQL'):
    """Draws panels, each a title and items of bars, below each other."""
    panels = [(title, items) for title, items in panels if items]
    if not panels:
        return
    sizes = [sum(len(rows) + 0.7 for _, rows in items) + 2.2 for _, items in panels]
    figure, all_axes = pyplot.subplots(len(panels), 1, figsize=(8.5, 0.2 * sum(sizes)), squeeze=False,
                                       sharex=True, gridspec_kw={'height_ratios': sizes},
                                       layout='constrained')
    for axes, (title, items) in zip(all_axes[:, 0], panels):
        bars(axes, title, items)
        axes.tick_params(axis='x', labelbottom=True)
    all_axes[-1, 0].set_xlim(0, None)
    all_axes[-1, 0].set_xlabel(f'time, of that of {compared_with}')
    who = {row['who'] for _, items in panels for _, rows in items for row in rows}
    legend(figure, [one for one in COLORS if one in who])
    save(figure, directory, name)


def items_of(rows, labels, first='stock', /, **wanted):
    """Returns items of bars: for each line with a label, the rows that have these columns, those
    of "first" first.  Of several of one, the first is taken."""
    found = select(rows, phase='', **wanted)
    items = []
    for line, label in labels.items():
        of_line = {}
        for row in select(found, line=line):
            of_line.setdefault(row['who'], row)
        if first in of_line and len(of_line) > 1:
            others = [who for who in COLORS if who in of_line and who != first]
            items.append((label, [of_line[who] for who in (first, *others)]))
    return items


def best_items(rows, labels, /, **wanted):
    """The same, but the fastest of each, whatever the number of workers."""
    return items_of(sorted(rows, key=time_of), labels, **wanted)


def curves(axes, rows, column):
    """Draws the times of each who over a column, with the least and the greatest."""
    for who in COLORS:
        points = sorted((float(row[column]), time_of(row) / 1000, *range_of(row))
                        for row in rows if row['who'] == who)
        if not points:
            continue
        over, seconds, least, greatest = zip(*points)
        axes.plot(over, seconds, marker='o', markersize=4, color=COLORS[who])
        axes.fill_between(over, [one / 1000 for one in least], [one / 1000 for one in greatest],
                          color=COLORS[who], alpha=0.25, linewidth=0)
    axes.grid(which='major')


def curve_picture(directory, name, panels, column, label, log=False):
    """Draws panels, each a title and rows, two beside each other."""
    panels = [(title, rows) for title, rows in panels if rows]
    if not panels:
        return
    lines = (len(panels) + 1) // 2
    figure, all_axes = pyplot.subplots(lines, min(len(panels), 2), figsize=(4.4 * min(len(panels), 2), 3.2 * lines),
                                       squeeze=False, layout='constrained')
    for axes in all_axes.flat[len(panels):]:
        axes.set_visible(False)
    for axes, (title, rows) in zip(all_axes.flat, panels):
        curves(axes, rows, column)
        axes.set_title(title)
        axes.set_xlabel(label)
        axes.set_ylabel('seconds')
        if log:
            axes.set_xscale('log')
            axes.set_yscale('log')
            axes.yaxis.set_major_formatter(lambda value, _: f'{value:g}')
            axes.xaxis.set_major_formatter(lambda value, _: text_of_rows(value))
        else:
            axes.set_ylim(0, None)
            axes.set_xticks(sorted({int(row[column]) for row in rows}))
    who = {row['who'] for _, rows in panels for row in rows}
    legend(figure, [one for one in COLORS if one in who])
    save(figure, directory, name)


def nanoseconds_per_row(row):
    return time_of(row) * 1e6 / int(row['rows'])


def gigabytes(row):
    return int(row['host_mb']) / 1000 if row['host_mb'] else None


def scale_picture(directory, name, panels):
    """Draws panels beside each other, each a title, rows, a function of a row, and its unit, over the number
    of rows.  Lines of one process are dashed."""
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.2), squeeze=False,
                                       layout='constrained')
    for axes, (title, rows, value, unit) in zip(all_axes[0], panels):
        for who, workers in sorted({(row['who'], row['workers']) for row in rows}):
            points = sorted((int(row['rows']), value(row)) for row in rows
                            if (row['who'], row['workers']) == (who, workers) and value(row) is not None)
            axes.plot(*zip(*points), marker='o', markersize=4, color=COLORS[who],
                      linestyle='--' if workers == '0' else '-')
        axes.set_title(title)
        axes.set_xlabel('rows')
        axes.set_ylabel(unit)
        axes.set_xscale('log')
        axes.set_ylim(0, None)
        axes.xaxis.set_major_formatter(lambda value, _: text_of_rows(value))
        axes.grid(which='major')
    who = {row['who'] for _, rows, _, _ in panels for row in rows}
    legend(figure, [one for one in COLORS if one in who])
    save(figure, directory, name)


def text_of_rows(number):
    for size, unit in (1e9, 'G'), (1e6, 'M'), (1e3, 'k'):
        if number >= size:
            return f'{number / size:g} {unit}'
    return f'{number:g}'


def phase_picture(directory, name, items, order):
    """Draws items, each a label and rows of phases, as bars that consist of them."""
    if not items:
        return
    figure, axes = pyplot.subplots(figsize=(8.5, 0.42 * len(items) + 1.2), layout='constrained')
    for place, (_, rows) in enumerate(items):
        left = 0
        for phase, color in zip(order, PHASE_COLORS):
            seconds = sum(time_of(row) for row in rows if row['phase'] == phase) / 1000
            if seconds:
                axes.barh(place, seconds, left=left, height=0.7, color=color)
                left += seconds
        axes.text(left, place, f' {text_of(left * 1000)}', va='center', fontsize=8.5)
    axes.set_yticks(range(len(items)), [label for label, _ in items])
    axes.invert_yaxis()
    axes.set_xlabel('seconds')
    axes.grid(axis='x')
    axes.set_axisbelow(True)
    axes.tick_params(axis='y', length=0)
    used = [phase for phase in order if any(row['phase'] == phase for _, rows in items for row in rows)]
    figure.legend(handles=[Patch(color=PHASE_COLORS[order.index(phase)], label=phase) for phase in used],
                  loc='lower left', bbox_to_anchor=(0.02, 1.0), ncols=len(used), borderaxespad=0)
    save(figure, directory, name)
